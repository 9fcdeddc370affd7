// Tables that change with the operating point.

const LONG = 48; // characters of a name
const short = (name) => (name.length > LONG ? `${name.slice(0, LONG - 1)}…` : name);

function fill(id, head, rows) {
  const heads = head.map((words) => html('th', { scope: 'col', class: words.class }, words.text ?? words));
  const body = rows.map((row) => {
    const [first, ...cells] = row.cells;
    return html('tr', { class: row.now ? 'now' : null }, html('th', { scope: 'row', title: first.length > LONG ? first : null }, short(first)),
      ...cells.map((cell) => (cell instanceof Node ? cell : html('td', {}, cell))));
  });
  at(id).replaceChildren(html('thead', {}, html('tr', {}, ...heads)), html('tbody', {}, ...body));
}

const words = (text) => html('td', { class: 'text' }, text);

// A share as a bar; the number stands in another cell.
function meter(share, most) {
  const width = Math.max(0, Math.min(100, (100 * share) / (most || 1)));
  return html('td', { class: 'meter', 'aria-hidden': 'true' },
    svg('svg', { viewBox: '0 0 100 12', preserveAspectRatio: 'none' },
      svg('rect', { x: 0, y: 2, width: 100, height: 8, fill: 'var(--grid)' }),
      svg('rect', { x: 0, y: 2, width: width.toFixed(2), height: 8, fill: 'var(--accent)' })));
}

// A share with its interval.
function whisker(share, low, high, most) {
  const to = (v) => Math.min(99, (98 * v) / (most || 1) + 1).toFixed(2);
  return html('td', { class: 'meter spread', 'aria-hidden': 'true' },
    svg('svg', { viewBox: '0 0 100 12', preserveAspectRatio: 'none' },
      svg('rect', { x: 0, y: 5.5, width: 100, height: 1, fill: 'var(--grid)' }),
      svg('rect', { x: to(low), y: 3.5, width: Math.max(0.5, to(high) - to(low)).toFixed(2), height: 5, fill: 'var(--s0)', 'fill-opacity': 0.45 }),
      svg('rect', { x: Math.max(0, to(share) - 0.6).toFixed(2), y: 0.5, width: 1.2, height: 11, fill: 'var(--s0)' })));
}

const bound = (value) => (value === null ? 'nothing promised' : percent(value));
const spread = (low, high) => `${percent(low)} to ${percent(high)}`;
const range = ([first, last], T) => (first === last ? (first === T ? `${count(T)} (all)` : count(first)) : `${count(first)}–${count(last)}`);

function fillLosses(facts, point) {
  const rows = facts.classes.names.map((name, i) => {
    const [lost, most] = point.losses[i], n = facts.classes.rows[i];
    return { cells: [name, count(lost), count(n), n ? percent(lost / n) : '–', bound(most)] };
  });
  fill('losses', ['class', 'lost', 'of rows', 'share', 'at most'], rows);
}

function fillShares(id, head, rows) {
  const large = rows.filter((row) => row.rows >= 100);
  const most = Math.max(...(large.length ? large : rows).map((row) => row.high), 0.0001);
  fill(id, [head, 'rows', 'differ', 'share', '95% interval', { text: '', class: 'meter spread' }], rows.map((row) => ({
    cells: [row.name, count(row.rows), count(row.differ), row.rows ? percent(row.differ / row.rows) : '–',
      row.rows ? spread(row.low, row.high) : '–',
      row.rows ? whisker(row.differ / row.rows, row.low, row.high, most) : html('td', { class: 'meter spread' })],
  })));
}

function stepRows(facts, seen) {
  return seen.by_step
    .map(([rows, differ, low, high], i) => ({ name: range(facts.bins[i], facts.base_models), rows, differ, low, high }))
    .filter((row) => row.rows);
}

// The slices of a column; of all columns, those that most clearly differ more than others.
function sliceRows(facts, seen, column) {
  const all = facts.rows.columns.flatMap((known, c) => known.slices.map((name, i) => {
    const [differ, low, high] = seen.by_slice[c][i];
    return { column: c, name, rows: known.rows[i], differ, low, high };
  }));
  if (column >= 0) return all.filter((row) => row.column === column);
  return all
    .filter((row) => row.differ)
    .sort((a, b) => b.low - a.low || b.differ - a.differ)
    .slice(0, 10)
    .map((row) => ({ ...row, name: `${facts.rows.columns[row.column].name}: ${row.name}` }));
}

function fillFirst(facts, policy) {
  const known = policy.reach_models;
  const looks = facts.first.some((row) => row.features);
  fill('first-models', ['step', 'base model', ...(looks ? [{ text: 'looks at', class: 'text' }] : []), ...(known ? ['rows that reach it'] : [])],
    facts.first.map((row, i) => ({
      cells: [count(i + 1), count(row.model),
        ...(looks ? [words(row.features.length ? row.features.map(short).join(', ') + (row.more ? ` and ${row.more} more` : '') : 'nothing')] : []),
        ...(known ? [percent(known[i], 1)] : [])],
    })));
  const features = facts.features;
  if (!features) {
    at('features-note').textContent = 'These base models do not say which features they look at.';
    return;
  }
  at('features-note').textContent = features.names.length < features.used
    ? `The first ${features.names.length} of ${count(features.used)} that base models look at.`
    : `All ${count(features.used)} that base models look at.`;
  const reach = policy.reach_features;
  fill('first-features', ['feature', 'first needed at step', ...(reach ? ['rows that need it', { text: '', class: 'meter' }] : [])],
    features.names.map((name, i) => ({
      cells: [name, count(features.steps[i]), ...(reach ? [percent(reach[i], 1), meter(reach[i], 1)] : [])],
    })));
}

function fillRivals(facts) {
  const timed = facts.times;
  for (const rival of facts.rivals.slice(1)) {
    const id = `rival-${at('rival-tables').children.length}`;
    at('rival-tables').append(html('div', {}, html('h3', {}, rival.name), html('div', { class: 'scroll' }, html('table', { id, 'aria-label': rival.name }))));
    fill(id, ['', 'base models per row', ...(timed ? ['µs per row'] : []), 'differ', 'of rows', 'share'], rival.labels.map((label, i) => ({
      cells: [label, models(rival.models[i]), ...(timed ? [micro(rival.microseconds[i])] : []), count(rival.differ[i]), count(rival.rows), percent(rival.differ[i] / rival.rows)],
    })));
  }
}
