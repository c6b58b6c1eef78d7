// Brings the page to life; what stands in it without this script is whole in itself.

import './page.css';
import {element} from './dom.js';
import {showFigures} from './figures.js';
import {count} from './format.js';
import {showLegend} from './legend.js';
import {showPairs} from './pairs.js';
import {Points} from './points.js';
import {announce, isHidden, onChange, setRun, state} from './store.js';

const byId = (id) => document.getElementById(id);

function remembered(value) {
  try {
    if (value !== undefined) localStorage.setItem('filterbench-theme', value);
    return localStorage.getItem('filterbench-theme');
  } catch {
    return null;  // some browsers keep nothing for files from the disk
  }
}

function themeButton() {
  const button = byId('theme');
  const NEXT = {auto: 'light', light: 'dark', dark: 'auto'};
  let theme = remembered();
  if (!(theme in NEXT)) theme = 'auto';
  const apply = () => {
    if (theme === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = `theme: ${theme}`;
    announce();
  };
  button.addEventListener('click', () => {
    theme = NEXT[theme];
    remembered(theme);
    apply();
  });
  button.hidden = false;
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', announce);
  apply();
}

// Parts of the page that are about one run: the one that is chosen is shown.
function runChoice() {
  const box = byId('run');
  const blocks = document.querySelectorAll('.run');
  const refresh = () => {
    for (const block of blocks) block.hidden = Number(block.dataset.run) !== state.run;
  };
  box?.addEventListener('change', () => setRun(Number(box.value)));
  onChange(refresh);
  refresh();
}

// One number of keys of the headline at a time, with all of them a click away.
function headlineKeys() {
  for (const place of document.querySelectorAll('.keys-choice')) {
    const bodies = [...place.parentElement.querySelectorAll('.headline tbody')];
    if (bodies.length < 2) continue;
    let chosen = bodies.findLast((body) => Number(body.dataset.keys) <= 1e6) || bodies[0];
    const buttons = [...bodies, null].map((body) => element('button', {
      type: 'button', onclick: () => {
        chosen = body;
        refresh();
      }}, body ? `${count(Number(body.dataset.keys))} keys` : 'all'));
    const refresh = () => {
      bodies.forEach((body) => { body.hidden = chosen !== null && chosen !== body; });
      buttons.forEach((button, i) => button.setAttribute(
        'aria-pressed', String((bodies[i] || null) === chosen)));
    };
    place.append(...buttons);
    place.hidden = false;
    refresh();
  }
  const lines = document.querySelectorAll('.headline tr[data-filter]');
  onChange(() => {
    for (const line of lines) line.hidden = isHidden(Number(line.dataset.filter));
  });
}

runChoice();
headlineKeys();
showLegend(byId('legend-body'));
byId('legend').hidden = false;
if (matchMedia('(max-width: 60rem)').matches) byId('legend').open = false;
const points = new Points(byId('points-body'));
showFigures(byId('figures-body'), (point) => points.reveal(point));
showPairs();
themeButton();

for (const button of document.querySelectorAll('.to-points')) {
  button.addEventListener('click', () => {
    const {run, column, value} = button.dataset;
    points.only(Number(run), column, JSON.parse(value));
    byId('points').scrollIntoView();
  });
}
