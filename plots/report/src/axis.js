// Scales of the charts: where a value lies on a linear axis, and the ticks for what of it is seen.
// The library's own logarithmic axis has no ticks inside of a decade, which zooming needs.

import {bytes, powerOfTen} from './format.js';

function nice(low, high, most) {
  const raw = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw * (1 - 1e-9));
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) {
    ticks.push(i * step);
  }
  return ticks;
}

const plain = (value) => String(Number(value.toPrecision(6))).replace('-', '\u2212');

function logTicks(low, high, most) {
  const decades = high - low;
  if (decades < 0.7) {
    return nice(10 ** low, 10 ** high, most).filter((v) => v > 0)
      .map((value) => ({at: Math.log10(value), label: plain(value)}));
  }
  const digits = decades <= 1.4 ? [1, 2, 3, 5, 7] : decades <= 3.2 ? [1, 2, 5] : [1];
  const every = digits.length > 1 ? 1 : Math.max(1, Math.ceil(decades / (1.5 * most)));
  const powers = digits.length === 1 || low < -4 || high > 5;
  const ticks = [];
  for (let e = Math.floor(low); e <= Math.ceil(high); e++) {
    for (const digit of digits) {
      const at = e + Math.log10(digit);
      if (at < low - 1e-9 || at > high + 1e-9 || (digits.length === 1 && e % every)) continue;
      const label = !powers ? plain(digit * 10 ** e)
        : digit === 1 ? powerOfTen(e) : `${digit}\u00d7${powerOfTen(e)}`;
      ticks.push({at, label});
    }
  }
  return ticks;
}

function byteTicks(low, high, most) {
  const step = Math.max(1, Math.ceil((high - low) / most));
  const ticks = [];
  for (let e = Math.ceil(low / step) * step; e <= high; e += step) {
    ticks.push({at: e, label: bytes(2 ** e)});
  }
  return ticks.length > 1 ? ticks
    : nice(2 ** low, 2 ** high, most).map((v) => ({at: Math.log2(v), label: bytes(v)}));
}

const linear = {
  to: (value) => value, from: (at) => at, pad: 0.04, least: 1e-9,
  ticks: (low, high, most) => nice(low, high, most).map((at) => ({at, label: plain(at)})),
};
const log = {
  to: (value) => (value > 0 ? Math.log10(value) : NaN), from: (at) => 10 ** at, pad: 0.05,
  least: 0.02, ticks: logTicks,
};

export const scales = {
  linear,
  log,
  keys: {...log, pad: 0.06},
  bytes: {
    to: (value) => (value > 0 ? Math.log2(value) : NaN), from: (at) => 2 ** at, pad: 0.04,
    least: 0.05, ticks: byteTicks,
  },
  share: {
    ...linear,
    ticks: (low, high, most) => nice(100 * low, 100 * high, most).map(
      (v) => ({at: v / 100, label: `${plain(v)} %`})),
  },
};

// The part of an axis that holds `places`, with air around it.
export function extent(scale, places, leastSpan) {
  let low = Math.min(...places);
  let high = Math.max(...places);
  const lack = leastSpan - (high - low);
  if (lack > 0) {
    low -= lack / 2;
    high += lack / 2;
  }
  const air = scale.pad * (high - low);
  return [low - air, high + air];
}
