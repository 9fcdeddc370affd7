// The page: what is shown at an operating point, and what the reader may do.

const facts = JSON.parse(at('facts').textContent);
const T = facts.base_models;
const state = { point: facts.own, column: -1 };
const STYLES = { 'this classifier': 0, 'QWYC* (the paper)': 1, 'natural order': 2, Fan: 3, 'smaller ensembles': 4 };
const MEANINGS = {
  'QWYC* (the paper)': 'QWYC* is the method of the paper',
  'natural order': 'natural order is the same rule, with the base models in the model’s own order',
  Fan: 'Fan is an older rule for quitting early',
  'smaller ensembles': 'smaller ensembles evaluate only the first base models, for every row',
};
const whose = facts.rows
  ? `the ${count(facts.rows.rows)} rows given${facts.rows.given > facts.rows.rows ? ` (drawn from ${count(facts.rows.given)})` : ''}`
  : { 'held-out': 'the rows held out', 'in-sample': 'the rows that it was fitted on', proven: 'the sample' }[facts.how];

const pointNow = () => facts.points[state.point];
const policyNow = () => facts.policies[pointNow().policy];

function tile(name, id, value, ...notes) {
  return html('div', {}, html('dt', {}, name), html('dd', { class: 'big', id }, value),
    ...notes.filter(Boolean).map((note) => html('dd', { class: 'sub' }, note)));
}

function showTiles(point, policy) {
  const seen = policy.on_rows, tiles = [];
  const source = facts.how === 'held-out' ? 'on rows held out' : facts.how === 'in-sample' ? 'on fitting rows' : 'on the sample';
  if (point.rows) {
    tiles.push(tile('Base models per row', 'n-models', models(point.models), `of ${count(T)} (${percent(point.models / T, 1)}) ${source}`,
      seen && `${models(seen.models)} on the rows given`));
    tiles.push(tile('Decided differently', 'n-differ', percent(point.differ / point.rows), `${count(point.differ)} of ${count(point.rows)} ${source}`,
      point.upper_bound === null ? 'nothing is promised' : `at most ${percent(point.upper_bound)} of new rows`,
      seen && `${percent(seen.differ / seen.rows)} of the rows given (${spread(...seen.interval)})`));
  } else if (seen) {
    tiles.push(tile('Base models per row', 'n-models', models(seen.models), `of ${count(T)} (${percent(seen.models / T, 1)}) on the rows given`));
    tiles.push(tile('Decided differently', 'n-differ', percent(seen.differ / seen.rows), `${count(seen.differ)} of ${count(seen.rows)} rows given`));
  } else {
    tiles.push(tile('Base models per row', 'n-models', `≤ ${count(T)}`, 'not measured'));
  }
  if (policy.microseconds) {
    const times = facts.times.full / policy.microseconds;
    tiles.push(tile('Microseconds per row', 'n-time', micro(policy.microseconds), `${micro(facts.times.full)} in full: ${times >= 1 ? `${times.toFixed(1)} times as fast` : 'quitting is slower'}`, 'one thread, this machine'));
  }
  if (seen && seen.accuracy !== undefined) {
    tiles.push(tile('Accuracy', 'n-accuracy', percent(seen.accuracy), `${percent(facts.rows.full_accuracy)} in full, on the rows given`, 'see also what each class loses'));
  }
  if (!facts.one_cost && point.rows) tiles.push(tile('Cost', 'n-cost', percent(point.cost, 1), 'of evaluating everything, by the costs that were given'));
  if (point.features !== null) tiles.push(tile('Features per row', 'n-features', models(point.features), `needed, of ${count(facts.features.used)}`));
  at('tiles').replaceChildren(...tiles);
}

function showMachines(policy) {
  if (!policy.microseconds) return;
  const load = Number(at('load').value), cores = Number(at('cores').value);
  const valid = load > 0 && cores >= 1;
  const needed = (micros) => (valid ? count(Math.max(1, Math.ceil((load * micros) / 1e6 / cores))) : '–');
  const busy = (micros) => (valid ? micro((load * micros) / 1e6) : '–');
  fill('machines', [valid ? `for ${count(load)} rows per second` : '', 'µs per row', 'cores busy', 'machines'], [
    { now: true, cells: ['quitting early', micro(policy.microseconds), busy(policy.microseconds), html('td', { id: 'n-machines' }, needed(policy.microseconds))] },
    { cells: ['in full', micro(facts.times.full), busy(facts.times.full), html('td', { id: 'n-machines-full' }, needed(facts.times.full))] },
  ]);
}

// Lines of the trade-off: on the rows given where there are some, otherwise by alpha on the rows held out.
function tradeoffLines(value) {
  if (facts.rivals.length) {
    return facts.rivals.map((rival, i) => {
      const values = value === 'models' ? rival.models : i ? rival.microseconds : facts.policies.map((p) => p.microseconds);
      const labels = rival.labels || facts.policies.map((_, k) => `alpha ${facts.points.find((p) => p.policy === k).name}`);
      return { name: rival.name, style: STYLES[rival.name], labels, points: rival.differ.map((d, k) => [d / rival.rows, values[k]]) };
    });
  }
  return [{ name: 'this classifier', style: 0, labels: facts.points.map((p) => `alpha ${p.name}`), points: facts.points.map((p) => [p.share, p.models]) }];
}

function showTradeoff(point) {
  const others = facts.rivals.length > 0;
  if (!others && facts.points.length < 2) return;
  const now = others ? point.policy : state.point;
  const x = others ? 'decided differently, on rows given (log scale)' : 'alpha (log scale)';
  const said = `At ${point.name}: `;
  const lines = tradeoffLines('models');
  drawTradeoff('chart-models', lines, now, {
    x, tick: count, short: models, value: (v) => `${models(v)} base models`,
    describe: `Base models per row against the share of decisions that differ. ${said}${models(lines[0].points[now][1])} base models. The tables below have all points.`,
  });
  if (!facts.times || !others) return;
  const timed = tradeoffLines('time');
  drawTradeoff('chart-time', timed, now, {
    x, tick: micro, short: (v) => `${micro(v)} µs`, value: (v) => `${micro(v)} µs`,
    describe: `Microseconds per row against the share of decisions that differ. ${said}${micro(timed[0].points[now][1])} microseconds. The tables below have all points.`,
  });
}

function showStops(policy) {
  if (policy.survival && T > 1) {
    const half = facts.positions.find((_, i) => policy.survival[i] <= 0.5);
    drawSurvival('chart-survival', facts.positions, policy.survival, `Share of rows undecided after each step. Half of the rows are decided after ${count(half)} of ${count(T)} base models.`);
    const every = Math.ceil(facts.positions.length / 12);
    fill('survival-table', ['base models evaluated', 'rows undecided'], facts.positions
      .map((t, i) => ({ i, cells: [count(t), percent(policy.survival[i])] }))
      .filter(({ i }) => i % every === 0 || i === facts.positions.length - 1));
  }
  if (policy.exits) {
    const total = policy.exits.reduce((a, b) => a + b, 0);
    drawExits('chart-exits', facts.bins, policy.exits, `Share of rows by the number of base models that they take; ${percent(policy.exits[policy.exits.length - 1] / total)} take all.`);
    fill('exits-table', ['base models', 'rows', 'share'], policy.exits.map((n, i) => ({ cells: [range(facts.bins[i], T), count(n), percent(n / total)] })));
  }
}

// The scores that the picture of thresholds shows, the same at every operating point.
function limitRange() {
  const found = facts.policies.flatMap((p) => (facts.kind === 'leads' ? [...p.least, ...p.most] : [...p.lower, ...p.upper])).filter((v) => v !== null).sort((a, b) => a - b);
  if (!found.length) return null;
  if (facts.kind === 'leads') return [0, found[Math.floor(0.97 * (found.length - 1))] * 1.15 || 1];
  const low = Math.min(found[Math.floor(0.03 * (found.length - 1))], facts.threshold), high = Math.max(found[Math.ceil(0.97 * (found.length - 1))], facts.threshold);
  const margin = 0.15 * (high - low) || 1;
  return [low - margin, high + margin];
}
const shown = limitRange();

function showLimits(policy) {
  const never = policy.quit === 'never';
  at('limits-figure').hidden = never || !shown;
  if (never || !shown) {
    at('limits-note').textContent = 'No row quits early here: every row is evaluated in full.';
    return;
  }
  const pick = (values) => facts.positions.map((t, i) => ({ t, values: values.map((v) => v[i]) })).filter((row) => row.values.some((v) => v !== null));
  const every = (rows) => rows.filter((_, i) => i % Math.ceil(rows.length / 12) === 0);
  const number = (v) => (v === null ? '–' : v.toPrecision(4));
  if (facts.kind === 'leads') {
    const none = policy.least.map(() => null);
    at('limits-name').textContent = 'Lead over the second class';
    at('limits-note').textContent = 'A row quits for the class with the largest running sum once that class leads the second by more than this. Below, it is undecided.';
    drawLimits('chart-limits', facts.positions, none, policy.least, shown, null, ['', 'quits for the class that leads', 'undecided'], 'Lead over the second class that a row needs to quit, by step.');
    fill('limits-table', ['step', 'lowest of any class', 'highest of any class'], every(pick([policy.least, policy.most])).map((row) => ({ cells: [count(row.t), ...row.values.map(number)] })));
    return;
  }
  const [negative, positive] = facts.labels.map((name) => (name.length > 24 ? `${name.slice(0, 23)}…` : name));
  at('limits-note').textContent = 'After each step a row quits if its running sum is in a coloured part. In the band between, it is undecided and the next base model is evaluated. Points are steps where rows can quit; the dashed line is the threshold of the full score.';
  drawLimits('chart-limits', facts.positions, policy.lower, policy.upper, shown, facts.threshold, [`quits as ${negative}`, `quits as ${positive}`, 'undecided'], `Thresholds on the running sum by step: above the upper one a row quits as ${positive}, below the lower one as ${negative}.`);
  fill('limits-table', ['step', `quits as ${negative} below`, `quits as ${positive} above`], every(pick([policy.lower, policy.upper])).map((row) => ({ cells: [count(row.t), ...row.values.map(number)] })));
}

function showDifferences(policy) {
  if (!policy.on_rows) return;
  fillShares('by-step', 'base models', stepRows(facts, policy.on_rows));
  if (!facts.rows.columns.length) return;
  const rows = sliceRows(facts, policy.on_rows, state.column);
  at('by-slice').hidden = !rows.length;
  at('no-slice').hidden = rows.length > 0;
  fillShares('by-slice', 'slice', rows);
}

function show() {
  const point = pointNow(), policy = policyNow(), slider = at('alpha');
  at('lines').replaceChildren(...point.lines.map((line) => html('li', {}, line)));
  at('sentence').textContent = point.sentence;
  if (slider) {
    slider.value = state.point;
    slider.setAttribute('aria-valuetext', point.name);
    at('now').textContent = point.name;
    at('reset').disabled = state.point === facts.own;
    at('code').replaceChildren(...(Number.isFinite(point.at) ? [html('code', {}, `fast.at(alpha=${point.at})`), ' returns this classifier.'] : []));
  }
  const sum = [];
  if (point.rows) sum.push(`${models(point.models)} of ${count(T)} base models`, `${percent(point.differ / point.rows)} differ`);
  if (policy.microseconds) sum.push(`${micro(policy.microseconds)} µs`);
  at('sum').textContent = sum.join(' · ');
  showTiles(point, policy);
  fillLosses(facts, point);
  showMachines(policy);
  showTradeoff(point);
  showStops(policy);
  showLimits(policy);
  fillFirst(facts, policy);
  showDifferences(policy);
  document.querySelectorAll('#points tbody tr').forEach((row, i) => row.classList.toggle('now', i === state.point));
}

// Parts that do not apply are left out, with a sentence that says why.
function leaveOut() {
  const timed = Boolean(facts.times);
  at('load-block').hidden = !timed;
  at('time-figure').hidden = !timed || !facts.rivals.length;
  if (!timed) {
    at('no-times').hidden = false;
    const few = 'measuring them takes at least 2,048 rows.', other = 'they were not requested, or base models are Python code.';
    at('no-times').textContent = facts.rows
      ? `Times and machines are left out: ${facts.rows.rows < 2048 ? few : other}`
      : 'Times, machines and accuracy are left out: they need rows (X), and accuracy their labels (y).';
  }
  if (facts.rivals.length) {
    at('tradeoff').textContent = 'What another alpha would cost, and other methods';
    at('tradeoff-note').textContent = `Measured on ${count(facts.rivals[0].rows)} of the rows given; the other methods were fitted on the remaining rows. Lower left is better. Points of this classifier are those of the slider. The other methods: ${facts.rivals.map((rival) => MEANINGS[rival.name]).filter(Boolean).join('; ')}.`;
    fillRivals(facts);
    at('legend').append(...facts.rivals.map((rival) => html('li', {}, svg('svg', { viewBox: '0 0 26 12', 'aria-hidden': 'true' },
      svg('line', { x1: 0, x2: 26, y1: 6, y2: 6, stroke: `var(--s${STYLES[rival.name]})`, 'stroke-width': 2 }), marker(STYLES[rival.name], 13, 6, 3.6, `var(--s${STYLES[rival.name]})`)), rival.name)));
  } else {
    at('legend').hidden = true;
    at('chart-models').parentElement.hidden = facts.points.length < 2;
    const few = facts.rows ? 'There are too few rows to fit other methods on.' : 'Other methods are left out: they need rows (X).';
    at('tradeoff-note').textContent = facts.points.length < 2 ? `This classifier has one operating point. ${few}` : `On the rows held out, at each alpha that they certify. ${few}`;
  }
  const known = facts.policies[facts.points[facts.own].policy];
  at('survival-figure').hidden = !known.survival || T < 2;
  at('stops-charts').hidden = !known.exits;
  at('stops-note').textContent = known.exits ? `On ${whose}.` : 'Where rows stopped is not known. Pass rows (X) to see how soon they are decided.';
  const rows = facts.rows;
  at('differences-tables').hidden = !rows;
  at('differences-note').textContent = rows
    ? `On ${whose}, compared with the full ensemble. Each interval is exact on its own; of many slices, some look worse by chance.`
    : 'Left out: the rows held out are not kept, only their counts. Pass rows (X) to see which decisions differ.';
  if (rows) {
    const options = [['-1', 'all: the clearest differences'], ...rows.columns.map((column, i) => [String(i), column.name])];
    at('column').append(...options.map(([value, name]) => html('option', { value }, name)));
    if (!rows.columns.length) at('by-slice').parentElement.parentElement.hidden = true;
  }
  if (facts.times) {
    at('cores').value = facts.times.cores;
    const { processor, cores, system, load } = facts.times.machine;
    at('about').textContent = `Times: one thread, ${count(facts.times.rows)} rows in a call, best of several, rows converted beforehand. ${processor}, ${cores} cores, ${system}${load ? `, load ${load}` : ''}.`;
  }
}

function themes() {
  const button = at('theme'), root = document.documentElement;
  const system = window.matchMedia('(prefers-color-scheme: dark)');
  const isDark = () => (root.dataset.theme ? root.dataset.theme === 'dark' : system.matches);
  const tell = () => button.setAttribute('aria-pressed', String(isDark()));
  button.hidden = false;
  button.addEventListener('click', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    tell();
  });
  system.addEventListener('change', tell);
  tell();
}

leaveOut();
themes();
if (at('alpha')) {
  at('alpha').addEventListener('input', (event) => { state.point = Number(event.target.value); show(); });
  at('reset').addEventListener('click', () => { state.point = facts.own; show(); at('alpha').focus(); });
}
for (const id of ['load', 'cores']) for (const event of ['input', 'change']) at(id).addEventListener(event, () => showMachines(policyNow()));
at('load-form').addEventListener('submit', (event) => event.preventDefault());
at('column').addEventListener('change', (event) => { state.column = Number(event.target.value); showDifferences(policyNow()); });
for (const [event, on] of [['beforeprint', true], ['afterprint', false]]) window.addEventListener(event, () => { paper.on = on; show(); });
let drawn = 0;
new ResizeObserver(() => {
  if (document.body.clientWidth !== drawn && !paper.on) {
    drawn = document.body.clientWidth;
    show();
  }
}).observe(document.body);
