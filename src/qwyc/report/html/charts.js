// Helpers, scales and pictures. Text from data is only ever set as text, never as markup.

const SVG = 'http://www.w3.org/2000/svg';

function make(space, name, attributes, children) {
  const element = space ? document.createElementNS(space, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined) element.setAttribute(key, value);
  }
  for (const child of children) {
    if (child !== null) element.append(child instanceof Node ? child : document.createTextNode(child));
  }
  return element;
}
const html = (name, attributes, ...children) => make(null, name, attributes, children);
const svg = (name, attributes, ...children) => make(SVG, name, attributes, children);
const at = (id) => document.getElementById(id);

const count = (n) => Math.round(n).toLocaleString('en-GB');
const percent = (share, digits = 2) => (100 * share).toFixed(digits) + '%';
const models = (n) => n.toFixed(1);
const micro = (n) => (n >= 1000 ? count(n) : Number(n.toPrecision(3)).toString());
// A share on an axis, with no more digits than it needs.
const tick = (share) => Number((100 * share).toPrecision(6)) + '%';

function roundNumbers(low, high, steps = [1, 2, 5]) {
  const found = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) {
    for (const m of steps) {
      const value = Number((m * 10 ** e).toPrecision(6));
      if (value >= low * 0.999 && value <= high * 1.001) found.push(value);
    }
  }
  return found;
}

// Ticks for a log scale: fewer where there is no space for more.
function logTicks(low, high, most) {
  const few = roundNumbers(low, high, [1, 2, 5]).length < 3;
  if (few && high < 10 * low) return linearTicks(low, high, Math.min(4, most));
  for (const steps of [[1, 2, 5], [1, 3], [1]]) {
    const found = roundNumbers(low, high, steps);
    if (found.length <= most && found.length > 1) return found;
  }
  const found = roundNumbers(low, high, [1]);
  const every = Math.ceil(found.length / most);
  return found.length ? found.filter((_, i) => i % every === 0) : [low, high];
}

function linearTicks(low, high, most) {
  const rough = (high - low) / most || 1;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= rough);
  const found = [];
  for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-9; v += step) found.push(Number(v.toPrecision(12)));
  return found;
}

const logScale = (low, high, from, to) => (v) =>
  from + ((Math.log(Math.max(v, low)) - Math.log(low)) / (Math.log(high) - Math.log(low) || 1)) * (to - from);
const linearScale = (low, high, from, to) => (v) => from + ((v - low) / (high - low || 1)) * (to - from);

const paper = { on: false }; // whether the page is being printed

// An empty picture with axes. `x` and `y` have scale (a function), ticks, text (of a tick) and name.
function frame(place, height, describe, build) {
  const onPaper = at(place).closest('.pair') ? 350 : 700;
  const width = paper.on ? onPaper : Math.max(260, Math.round(at(place).clientWidth || 520));
  const box = { left: 46, right: width - 14, top: 12, bottom: height - 40, width, height };
  const root = svg('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': describe });
  build(root, box);
  at(place).replaceChildren(root);
}

function axes(root, box, x, y) {
  for (const v of y.ticks) {
    const to = y.scale(v);
    root.append(svg('line', { class: 'grid', x1: box.left, x2: box.right, y1: to, y2: to }));
    root.append(svg('text', { x: box.left - 7, y: to + 4, 'text-anchor': 'end' }, y.text(v)));
  }
  let last = -1e9;
  for (const v of x.ticks) {
    const to = x.scale(v), words = x.text(v), half = 3.4 * words.length;
    root.append(svg('line', { class: 'axis', x1: to, x2: to, y1: box.bottom, y2: box.bottom + 4 }));
    if (to - half < last + 6) continue;
    const middle = Math.min(to, box.width - half - 1);
    root.append(svg('text', { x: middle, y: box.bottom + 17, 'text-anchor': 'middle' }, words));
    last = middle + half;
  }
  root.append(svg('line', { class: 'axis', x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  root.append(svg('text', { x: (box.left + box.right) / 2, y: box.height - 5, 'text-anchor': 'middle' }, x.name));
}

const path = (points) => points.map(([x, y], i) => `${i ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`).join('');

// Markers differ in shape as well as in colour.
function marker(kind, x, y, size, colour) {
  const s = size;
  if (kind === 0) return svg('circle', { cx: x, cy: y, r: s, fill: colour });
  const shapes = {
    1: `M${x - s} ${y - s}h${2 * s}v${2 * s}h${-2 * s}z`,
    2: `M${x} ${y - 1.2 * s}L${x + 1.2 * s} ${y + s}H${x - 1.2 * s}z`,
    3: `M${x} ${y - 1.35 * s}L${x + 1.35 * s} ${y}L${x} ${y + 1.35 * s}L${x - 1.35 * s} ${y}z`,
    4: `M${x - s} ${y - s}L${x + s} ${y + s}M${x + s} ${y - s}L${x - s} ${y + s}`,
  };
  return svg('path', kind === 4
    ? { d: shapes[4], stroke: colour, 'stroke-width': 2, fill: 'none' }
    : { d: shapes[kind], fill: colour });
}

// Lines of points (x: a share, y: a number), on log scales; a share of 0 is at the left edge. `now` is
// the index of the marked point of the first line.
function drawTradeoff(place, lines, now, words) {
  const xs = lines.flatMap((line) => line.points.map((p) => p[0])).filter((v) => v > 0);
  const ys = lines.flatMap((line) => line.points.map((p) => p[1])).filter((v) => v > 0);
  if (!xs.length) xs.push(0.001);
  const zero = lines.some((line) => line.points.some((p) => p[0] === 0));
  const lowX = Math.min(...xs) / (zero ? 2.2 : 1.15), highX = Math.max(...xs, 2 * lowX) * 1.15;
  const lowY = Math.min(...ys) / 1.25, highY = Math.max(...ys) * 1.25;
  frame(place, 300, words.describe, (root, box) => {
    const x = { scale: logScale(lowX, highX, box.left, box.right), text: tick, name: words.x };
    x.ticks = logTicks(zero ? Math.min(...xs) : lowX, highX, box.width / 70);
    const y = { scale: logScale(lowY, highY, box.bottom, box.top), text: words.tick };
    y.ticks = logTicks(lowY, highY, 8).filter((v, i, all) => !i || y.text(v) !== y.text(all[i - 1]));
    axes(root, box, x, y);
    if (zero) root.append(svg('text', { x: box.left, y: box.bottom + 17, 'text-anchor': 'middle' }, '0'));
    const spots = (line) => line.points.map(([share, v]) => [share > 0 ? x.scale(share) : box.left, y.scale(v)]);
    [...lines].reverse().forEach((line, back) => {
      const i = lines.length - 1 - back, colour = `var(--s${line.style})`;
      const points = spots(line);
      const sorted = [...points].sort((a, b) => a[0] - b[0] || b[1] - a[1]);
      root.append(svg('path', { d: path(sorted), fill: 'none', stroke: colour, 'stroke-width': i ? 1.5 : 2.25, 'stroke-opacity': i ? 0.75 : 1 }));
      points.forEach(([px, py], k) => {
        const dot = marker(line.style, px, py, i ? 3.2 : 3, colour);
        dot.append(svg('title', {}, `${line.name}, ${line.labels[k]}: ${words.value(line.points[k][1])} at ${percent(line.points[k][0], 3)}`));
        root.append(dot);
      });
    });
    const [px, py] = spots(lines[0])[now];
    root.append(svg('circle', { class: 'now', cx: px, cy: py, r: 7.5, fill: 'none', stroke: 'var(--s0)', 'stroke-width': 2.5 }));
    // Below it on the left there is no other line, as long as this one is the best.
    const atEdge = px < box.left + 50;
    root.append(svg('text', {
      class: 'strong halo', x: px + (atEdge ? 12 : -6), y: Math.min(py + (atEdge ? -8 : 22), box.bottom - 5), 'text-anchor': atEdge ? 'start' : 'end',
    }, words.short(lines[0].points[now][1])));
  });
}

function drawSurvival(place, positions, share, describe) {
  const T = positions[positions.length - 1];
  frame(place, 270, describe, (root, box) => {
    const x = { scale: logScale(1, Math.max(T, 2), box.left, box.right), text: count, name: `base models evaluated, of ${count(T)} (log scale)` };
    x.ticks = [...logTicks(1, Math.max(T, 2), box.width / 60).filter((v) => v < 0.7 * T), T];
    const y = { scale: linearScale(0, 1, box.bottom, box.top), ticks: [0, 0.25, 0.5, 0.75, 1], text: (v) => `${100 * v}%` };
    axes(root, box, x, y);
    const points = [];
    positions.forEach((t, i) => {
      if (i) points.push([x.scale(t), y.scale(share[i - 1])]);
      points.push([x.scale(t), y.scale(share[i])]);
    });
    const [first] = points;
    root.append(svg('path', { d: `${path(points)}L${box.right} ${box.bottom}L${first[0]} ${box.bottom}Z`, fill: 'var(--accent-soft)' }));
    root.append(svg('path', { d: path(points), fill: 'none', stroke: 'var(--accent)', 'stroke-width': 2 }));
  });
}

function drawExits(place, bins, rows, describe) {
  const total = rows.reduce((a, b) => a + b, 0), shares = rows.map((n) => n / total);
  frame(place, 270, describe, (root, box) => {
    const high = Math.max(...shares) * 1.12;
    const y = { scale: linearScale(0, high, box.bottom, box.top), text: (v) => `${Number((100 * v).toPrecision(3))}%` };
    y.ticks = linearTicks(0, high, 4);
    axes(root, box, { ticks: [], name: 'base models that a row takes, up to' }, y);
    const step = (box.right - box.left) / bins.length;
    bins.forEach(([first, last], i) => {
      const left = box.left + i * step + Math.min(4, step * 0.15), width = step - 2 * Math.min(4, step * 0.15);
      const words = first === last ? count(first) : `${count(first)}–${count(last)}`;
      const bar = svg('rect', { x: left, width, y: y.scale(shares[i]), height: box.bottom - y.scale(shares[i]), fill: i === bins.length - 1 ? 'var(--s4)' : 'var(--accent)' });
      bar.append(svg('title', {}, `${words}: ${count(rows[i])} rows, ${percent(shares[i])}`));
      root.append(bar);
      const short = i === bins.length - 1 ? 'all' : String(last);
      if (step > 7.2 * short.length || i % 2 === bins.length % 2 || i === bins.length - 1) {
        root.append(svg('text', { x: left + width / 2, y: box.bottom + 17, 'text-anchor': 'middle' }, short));
      }
    });
  });
}

// Thresholds along the order. `lower` and `upper` have null where no row quits; the band between them is
// where rows are undecided. `range` is that of the scores which are shown.
function drawLimits(place, positions, lower, upper, range, threshold, names, describe) {
  const T = positions[positions.length - 1];
  frame(place, 320, describe, (root, box) => {
    const x = { scale: logScale(1, Math.max(T, 2), box.left, box.right), text: count, name: 'step in the order of the policy (log scale)' };
    x.ticks = [...logTicks(1, Math.max(T, 2), box.width / 60).filter((v) => v < 0.7 * T), T];
    const y = { scale: linearScale(range[0], range[1], box.bottom, box.top), text: (v) => String(v), ticks: linearTicks(range[0], range[1], 6) };
    const fit = (v) => Math.min(Math.max(y.scale(v), box.top), box.bottom);
    axes(root, box, x, y);
    const outline = (values) => positions.flatMap((t, i) => (values[i] === null ? [] : [[x.scale(t), fit(values[i])]]));
    const parts = [
      [outline(upper), box.top, '--accent', names[1], box.top + 18],
      [outline(lower), box.bottom, '--warm', names[0], box.bottom - 10],
    ];
    const first = Math.min(...parts.flatMap(([line]) => line.slice(0, 1).map((p) => p[0])));
    for (const [line, end, colour, name, place] of parts) {
      if (!line.length) continue;
      root.append(svg('path', { d: `${path(line)}L${line[line.length - 1][0]} ${end}L${line[0][0]} ${end}Z`, fill: `var(${colour}-soft)` }));
      root.append(svg('path', { d: path(line), fill: 'none', stroke: `var(${colour})`, 'stroke-width': 1.5 }));
      for (const [px, py] of line) root.append(svg('circle', { cx: px, cy: py, r: 2.2, fill: `var(${colour})` }));
      root.append(svg('text', { class: 'strong', x: (line[0][0] + line[line.length - 1][0]) / 2, y: place, 'text-anchor': 'middle' }, name));
    }
    if (threshold !== null && threshold >= range[0] && threshold <= range[1]) {
      const to = y.scale(threshold);
      root.append(svg('line', { x1: box.left, x2: box.right, y1: to, y2: to, stroke: 'var(--soft)', 'stroke-dasharray': '5 4' }));
    }
    if (first - box.left > 70) root.append(svg('text', { class: 'strong', x: box.left + 6, y: (box.top + box.bottom) / 2 }, names[2]));
  });
}
