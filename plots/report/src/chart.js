// One chart: ECharts draws axes, lines and markers; zooming, pointing and the keyboard are here, so
// that they are the same with a mouse, a finger and keys.

import * as echarts from 'echarts/core';
import {CustomChart, LineChart} from 'echarts/charts';
import {GridComponent, MarkLineComponent} from 'echarts/components';
import {SVGRenderer} from 'echarts/renderers';

import {extent, scales} from './axis.js';
import {element} from './dom.js';
import {filters, series as looks} from './store.js';

echarts.use([CustomChart, LineChart, GridComponent, MarkLineComponent, SVGRenderer]);

const MARKER = 9;        // pixels
const REACH = 28;        // pixels from the pointer within which a point is meant
const STRETCH = 2;       // how far intervals may stretch the y axis beyond the values, as a factor
const FONT = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif';

function theme() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  return {ink: read('--ink'), quiet: read('--quiet'), line: read('--line'), ground: read('--card'),
          front: read('--front'), isDark: read('--is-dark') === '1'};
}

export class Chart {
  // `onPoint(item)` is called when a point is chosen, `tipOf(item)` gives the nodes of its tip.
  constructor(title, {onPoint, tipOf}) {
    this.onPoint = onPoint;
    this.tipOf = tipOf;
    this.canvas = element('div', {class: 'canvas'});
    this.box = element('div', {class: 'zoom-box', hidden: true});
    this.ring = element('div', {class: 'ring', hidden: true});
    this.tip = element('div', {class: 'tip', role: 'tooltip', hidden: true});
    this.live = element('div', {class: 'visually-hidden', 'aria-live': 'polite'});
    this.frame = element('div', {
      class: 'chart', tabindex: 0, role: 'application',
      'aria-label': `Chart: ${title}. Arrow keys go from point to point, Enter shows the point ` +
        'in the table, plus and minus zoom, zero resets.',
      onkeydown: (event) => this.#key(event), onblur: () => this.#leave(),
      onfocus: () => this.#see(true),
    }, this.canvas, this.box, this.ring, this.tip, this.live);
    this.#listen();
    new ResizeObserver(() => this.#resize()).observe(this.frame);
    // Charts out of sight are drawn when they come near: hiding a filter then costs the charts that
    // one looks at.
    new IntersectionObserver((seen) => this.#see(seen.at(-1).isIntersecting),
                             {rootMargin: '300px'}).observe(this.frame);
    addEventListener('beforeprint', () => this.#see(true));
  }

  #see(isSeen) {
    this.isSeen = isSeen;
    if (isSeen && this.isStale) this.#render();
  }

  // A model: {x, y: {label, scale}, drawn: [series], marks: [{at, label}]}; series as figures.js
  // makes them. `keep` leaves the zoom as it is.
  draw(model, keep = false) {
    this.model = model;
    this.sx = scales[model.x.scale];
    this.sy = scales[model.y.scale];
    this.items = model.drawn.flatMap((entry) => entry.items || []);
    this.home = this.#home();
    if (!keep || !this.window) this.window = {...this.home};
    this.current = null;
    this.#leave();
    this.#render();
  }

  #home() {
    const xs = [];
    const ys = [];
    for (const entry of this.model.drawn) {
      for (const item of entry.items || []) {
        if (entry.kind === 'floor' || !Number.isFinite(item.at[0])) continue;
        xs.push(item.at[0]);
      }
    }
    const [x0, x1] = xs.length ? extent(this.sx, xs, this.model.x.leastSpan || 1e-6) : [0, 1];
    for (const entry of this.model.drawn) {
      for (const item of entry.items || []) {
        if (!Number.isFinite(item.at[1]) || item.at[0] < x0 || item.at[0] > x1) continue;
        ys.push(item.at[1]);
      }
    }
    if (ys.length) {
      const [least, most] = [Math.min(...ys), Math.max(...ys)];
      const stretch = this.sy.to === scales.log.to ? Math.log10(STRETCH) : (most - least) / 2;
      for (const item of this.items) {
        for (const end of [item.low, item.high]) {
          if (!Number.isFinite(end)) continue;
          ys.push(Math.min(Math.max(end, least - stretch), most + stretch));
        }
      }
    }
    const [y0, y1] = ys.length ? extent(this.sy, ys, this.sy.leastSpan || 0.3) : [0, 1];
    return {x0, x1, y0, y1};
  }

  #render() {
    this.isStale = true;
    if (!this.isSeen || !this.model || this.frame.clientWidth === 0) return;
    this.isStale = false;
    if (!this.chart) this.chart = echarts.init(this.canvas, null, {renderer: 'svg'});
    const colours = theme();
    const {clientWidth: width, clientHeight: height} = this.frame;
    const narrow = width < 480;
    const {x0, x1, y0, y1} = this.window;
    const xTicks = this.sx.ticks(x0, x1, Math.max(2, Math.floor(width / (narrow ? 80 : 95))));
    const yTicks = this.sy.ticks(y0, y1, Math.max(3, Math.floor(height / 55)));
    const axis = (label, ticks, low, high, gap) => ({
      type: 'value', min: low, max: high, name: label, nameLocation: 'middle', nameGap: gap,
      nameTextStyle: {color: colours.quiet, fontSize: 12, fontFamily: FONT},
      axisLine: {show: true, onZero: false, lineStyle: {color: colours.quiet}},
      axisTick: {show: true, customValues: ticks.map((t) => t.at),
                 lineStyle: {color: colours.quiet}},
      axisLabel: {
        customValues: ticks.map((t) => t.at), color: colours.quiet, fontSize: 11, fontFamily: FONT,
        hideOverlap: true,
        formatter: (value) => (ticks.find((t) => Math.abs(t.at - value) < 1e-6 * (high - low)) ||
                               {label: ''}).label,
      },
      splitLine: {lineStyle: {color: colours.line}}, splitNumber: 1, animation: false,
    });
    this.grid = {left: narrow ? 52 : 62, right: 16, top: this.model.marks?.length ? 34 : 14,
                 bottom: 46};
    this.chart.setOption({
      animation: false, grid: {...this.grid, containLabel: false},
      xAxis: axis(this.model.x.label, xTicks, x0, x1, 26),
      yAxis: axis(this.model.y.label, yTicks, y0, y1, narrow ? 38 : 46),
      series: this.#series(colours),
    }, {notMerge: true});
    if (this.current) this.#point(this.current);
  }

  #colour(place, colours) {
    if (place === null || place === undefined) return colours.quiet;
    return filters[looks[place].filter][colours.isDark ? 'dark' : 'light'];
  }

  #series(colours) {
    const made = this.model.drawn.flatMap((entry, index) => this.#drawn(entry, index, colours));
    if (this.model.marks?.length) {
      made.push({
        type: 'line', data: [], silent: true, markLine: {
          silent: true, symbol: 'none', animation: false,
          lineStyle: {color: colours.quiet, type: [3, 3], width: 1, opacity: 0.7},
          data: this.model.marks.filter((m) => m.at > this.window.x0 && m.at < this.window.x1)
            .map((mark) => ({xAxis: mark.at, label: {
              formatter: mark.label.replace(' ', '\n'), position: 'end', color: colours.quiet,
              fontSize: 10.5, lineHeight: 12, fontFamily: FONT}})),
        },
      });
    }
    return made;
  }

  #drawn(entry, index, colours) {
    const colour = this.#colour(entry.look, colours);
    const look = entry.look === null || entry.look === undefined ? null : looks[entry.look];
    const line = (places, width, type, more = {}) => ({
      type: 'line', data: places, showSymbol: false, silent: true, clip: true, z: 2,
      lineStyle: {color: colour, width, type}, ...more,
    });
    const path = entry.path || (entry.items || []).map((item) => item.at)
      .filter((at) => at.every(Number.isFinite));
    switch (entry.kind) {
      case 'theory':
        return [line(path, 1.3, entry.dashes, {lineStyle: {
          color: colour, width: look ? 1.4 : 1.2, type: entry.dashes, opacity: 0.85}})];
      case 'front':
        return [line(path, 5, 'solid', {step: 'end', z: 1, lineStyle: {
          color: colours.front, width: 5, cap: 'round', join: 'round'}})];
      case 'floor':
        return [line(path, 1.3, look.dashes.length ? look.dashes : 'solid')];
      default: {
        const marks = this.#marks(entry, index, colour, look, colours);
        return entry.kind === 'line'
          ? [line(path, 1.6, look.dashes.length ? look.dashes : 'solid'), marks] : [marks];
      }
    }
  }

  // Markers with their intervals; an arrow down for an upper limit.
  #marks(entry, index, colour, look, colours) {
    const stroke = {stroke: colour, lineWidth: 1.2, fill: 'none'};
    return {
      type: 'custom', silent: true, clip: true, z: 3, data: entry.items.map((item) => item.at),
      renderItem: (params, api) => {
        const item = entry.items[params.dataIndex];
        if (!item.at.every(Number.isFinite)) return null;
        const [x, y] = api.coord(item.at);
        const children = [];
        const bar = (from, to, cap) => children.push(
          {type: 'line', shape: {x1: x, x2: x, y1: from, y2: to}, style: stroke},
          ...cap.map((end) => ({type: 'line', shape: {x1: x - 3, x2: x + 3, y1: end, y2: end},
                                style: stroke})));
        if (entry.kind === 'limits') {
          bar(y, y + 20, []);
          children.push({type: 'polyline', shape: {points: [[x - 3.5, y + 15], [x, y + 21],
                                                            [x + 3.5, y + 15]]}, style: stroke});
        } else {
          const ends = [item.low, item.high].map(
            (end) => (Number.isFinite(end) ? api.coord([item.at[0], end])[1] : y));
          if (ends[0] - ends[1] > 1) bar(ends[0], ends[1], ends);
        }
        const size = entry.kind === 'limits' ? 0.7 * MARKER : MARKER;
        const shape = (pathData, style) => ({
          type: 'path', x, y, scaleX: size, scaleY: size,
          shape: {pathData}, style: {strokeNoScale: true, ...style}});
        children.push(shape(look.marker.outline, {fill: colours.ground}));
        if (look.marker.filled) children.push(shape(look.marker.filled, {fill: colour}));
        children.push(shape(look.marker.outline, {fill: 'none', stroke: colour, lineWidth: 1.3}));
        return {type: 'group', children: entry.kind === 'pale'
          ? children.map((child) => ({...child, style: {...child.style, opacity: 0.45}}))
          : children};
      },
    };
  }

  // --- Pixels and places ---

  #pixel([x, y]) {
    return this.chart.convertToPixel({gridIndex: 0}, [x, y]);
  }

  #isInside([px, py]) {
    return px >= this.grid.left - 1 && px <= this.frame.clientWidth - this.grid.right + 1 &&
      py >= this.grid.top - 1 && py <= this.frame.clientHeight - this.grid.bottom + 1;
  }

  #seen() {
    return this.items.map((item) => ({item, pixel: item.at.every(Number.isFinite)
      ? this.#pixel(item.at) : [NaN, NaN]})).filter(({pixel}) => this.#isInside(pixel));
  }

  #nearest(px, py) {
    let best = null;
    let least = REACH;
    for (const {item, pixel} of this.#seen()) {
      const distance = Math.hypot(pixel[0] - px, pixel[1] - py);
      if (distance < least) {
        least = distance;
        best = item;
      }
    }
    return best;
  }

  // --- Pointing ---

  #point(item, speak = false) {
    this.current = item;
    const [x, y] = this.#pixel(item.at);
    if (!this.#isInside([x, y])) {
      this.ring.hidden = this.tip.hidden = true;
      return;
    }
    this.ring.hidden = this.tip.hidden = false;
    this.ring.style.transform = `translate(${x}px, ${y}px)`;
    this.tip.replaceChildren(...this.tipOf(item));
    const {offsetWidth: width, offsetHeight: height} = this.tip;
    const [right, below] = [this.frame.clientWidth - width, this.frame.clientHeight - height];
    let left = x + 16;
    let top = Math.max(0, Math.min(y - height / 2, below));
    if (left > right) left = x - 16 - width;
    if (left < 0) {
      // No room beside the point: above or below it.
      left = Math.max(0, right / 2);
      top = y > this.frame.clientHeight / 2 ? Math.min(0, y - 16 - height)
        : Math.max(below, y + 16);
    }
    this.tip.style.transform = `translate(${left}px, ${top}px)`;
    if (speak) this.live.textContent = this.tip.innerText;
  }

  #leave() {
    this.current = null;
    this.ring.hidden = this.tip.hidden = true;
  }

  #listen() {
    const at = (event) => {
      const rect = this.frame.getBoundingClientRect();
      return [event.clientX - rect.left, event.clientY - rect.top];
    };
    let start = null;
    this.frame.addEventListener('pointerdown', (event) => {
      if (event.button !== 0 || !this.chart) return;
      if (event.pointerType === 'mouse') {
        start = at(event);
        if (!this.#isInside(start)) start = null;
        else this.frame.setPointerCapture(event.pointerId);
      } else {
        const item = this.#nearest(...at(event));
        if (item) this.#point(item);
        else this.#leave();
      }
    });
    this.frame.addEventListener('pointermove', (event) => {
      if (event.pointerType !== 'mouse' || !this.chart) return;
      const place = at(event);
      if (start) {
        const far = Math.hypot(place[0] - start[0], place[1] - start[1]) > 6;
        this.box.hidden = !far;
        if (far) {
          this.#leave();
          Object.assign(this.box.style, {
            left: `${Math.min(start[0], place[0])}px`, top: `${Math.min(start[1], place[1])}px`,
            width: `${Math.abs(place[0] - start[0])}px`,
            height: `${Math.abs(place[1] - start[1])}px`});
          return;
        }
      }
      const item = this.#nearest(...place);
      if (item && item !== this.current) this.#point(item);
      else if (!item) this.#leave();
    });
    this.frame.addEventListener('pointerup', (event) => {
      if (!start) return;
      const end = at(event);
      const from = start;
      start = null;
      if (!this.box.hidden) {
        this.box.hidden = true;
        this.#zoomTo(from, end);
      } else if (this.current) {
        this.onPoint(this.current);
      }
    });
    this.frame.addEventListener('pointercancel', () => {
      start = null;
      this.box.hidden = true;
    });
    this.frame.addEventListener('pointerleave', (event) => {
      if (event.pointerType === 'mouse' && !start) this.#leave();
    });
    this.frame.addEventListener('dblclick', () => this.reset());
    this.frame.addEventListener('wheel', (event) => {
      if (!event.ctrlKey || !this.chart) return;
      event.preventDefault();
      this.zoom(event.deltaY < 0 ? 1.25 : 0.8, at(event));
    }, {passive: false});
  }

  // --- Zooming ---

  #place(pixel) {
    return this.chart.convertFromPixel({gridIndex: 0}, pixel);
  }

  #zoomTo(one, other) {
    const clamp = ([px, py]) => [
      Math.min(Math.max(px, this.grid.left), this.frame.clientWidth - this.grid.right),
      Math.min(Math.max(py, this.grid.top), this.frame.clientHeight - this.grid.bottom)];
    const [a, b] = [this.#place(clamp(one)), this.#place(clamp(other))];
    this.#show({x0: Math.min(a[0], b[0]), x1: Math.max(a[0], b[0]),
                y0: Math.min(a[1], b[1]), y1: Math.max(a[1], b[1])});
  }

  #show(window) {
    const full = this.home;
    if (window.x1 - window.x0 < 1e-4 * (full.x1 - full.x0) ||
        window.y1 - window.y0 < 1e-4 * (full.y1 - full.y0)) return;
    this.window = window;
    this.#render();
  }

  zoom(factor, centre = null) {
    if (!this.chart) return;
    const {x0, x1, y0, y1} = this.window;
    const [cx, cy] = centre ? this.#place(centre)
      : this.current ? this.current.at : [(x0 + x1) / 2, (y0 + y1) / 2];
    this.#show({x0: cx - (cx - x0) / factor, x1: cx + (x1 - cx) / factor,
                y0: cy - (cy - y0) / factor, y1: cy + (y1 - cy) / factor});
  }

  reset() {
    this.window = {...this.home};
    this.#render();
  }

  // --- Keys ---

  #step(direction) {
    const seen = this.#seen().map(({item}) => item);
    if (seen.length === 0) return;
    const place = seen.indexOf(this.current);
    let next;
    if (direction === 'left' || direction === 'right') {
      const step = direction === 'right' ? 1 : -1;
      next = place < 0 ? 0 : (place + step + seen.length) % seen.length;
    } else {
      // The nearest point of another series, above or below.
      const here = place < 0 ? seen[0] : this.current;
      const [x, y] = this.#pixel(here.at);
      let least = Infinity;
      next = place < 0 ? 0 : place;
      seen.forEach((item, i) => {
        const [px, py] = this.#pixel(item.at);
        const ahead = direction === 'up' ? y - py : py - y;
        const cost = ahead + 4 * Math.abs(px - x);
        if (item !== here && ahead > 0.5 && cost < least) {
          least = cost;
          next = i;
        }
      });
    }
    this.#point(seen[next], true);
  }

  #key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || !this.chart) return;
    const act = {
      ArrowLeft: () => this.#step('left'), ArrowRight: () => this.#step('right'),
      ArrowUp: () => this.#step('up'), ArrowDown: () => this.#step('down'),
      '+': () => this.zoom(1.5), '=': () => this.zoom(1.5), '-': () => this.zoom(1 / 1.5),
      0: () => this.reset(), Escape: () => this.#leave(),
      Enter: () => this.current && this.onPoint(this.current),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  #resize() {
    if (this.chart && this.frame.clientWidth > 0) {
      this.chart.resize({width: this.frame.clientWidth, height: this.frame.clientHeight});
    }
    this.#render();
  }
}
