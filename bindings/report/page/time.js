/* ---- Timeline ---- */

/* When windows began, and now: the first one with the profile. */
function boundaries(context) {
    const marks = (context.marks || []).map((m) => m.at_ns);
    const start = (context.profile || {}).started_ns;
    return [start > 0 && start <= (marks[0] ?? Infinity) ? start : marks[0] ?? 0, ...marks, report.process.now_ns ?? marks[marks.length - 1]];
}

const timed = report.contexts.find((c) => (c.histories || []).some((h) => h.kept));
let span = timed && [boundaries(timed)[0], boundaries(timed).pop()];

const spanText = () => `Allocated between ${duration(span[0] - boundaries(timed)[0])} and ${duration(span[1] - boundaries(timed)[0])}, and still live`;

/* Of windows that lie in the interval by more than half. */
function keep() {
    const within = report.contexts.map((c) => {
        const at = boundaries(c);
        return at.slice(1).map((end, i) => (end + at[i]) / 2 > span[0] && (end + at[i]) / 2 < span[1]);
    });
    for (const row of rows)
        row.kept = (row.history?.kept || []).reduce((all, n, i) => all + (within[row.at][i] ? n : 0), 0);
}

/* To the windows that begin and end next to it. */
function choose(from, to) {
    const at = boundaries(timed), nearest = (t) => d3.least(at, (a) => Math.abs(a - t));
    let [a, b] = [nearest(Math.min(from, to)), nearest(Math.max(from, to))];
    if (a === b) [a, b] = a < at[at.length - 1] ? [a, at[at.indexOf(a) + 1]] : [at[at.length - 2], a];
    span = [a, b];
    [$("from").value, $("to").value] = [a, b];
    keep();
    $("by").value = "kept";
    mark();
    show();
}

/* The interval is shaded in the plot. */
function mark() {
    if (!plotted || !timed || $("by").value !== "kept") return plotted?.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    const [left, right] = span.map((t) => plotted.valToPos((t - plotted.first) / 1e9, "x"));
    plotted.setSelect({ left, width: right - left, top: 0, height: plotted.over.clientHeight }, false);
}

/* What a learner decided, as lines across the plot and as a list below it. */
function decided(context, first) {
    const list = context.decisions || [];
    $("decisions").replaceChildren();
    for (const d of list)
        element($("decisions"), "li", `${((d.at_ns - first) / 1e9).toFixed(1)} s: ${d.text}`, d.kind);
    return list.filter((d) => d.kind !== "try" && d.kind !== "undo").map((d) => ({ name: d.kind, at_ns: d.at_ns }));
}

/* What was measured over time. Without a learner these are the marks of the profile, and the report itself. */
function pointsOf(context) {
    if ((context.timeline || []).length > 1) return context.timeline;
    const marks = context.marks || [];
    if (marks.length === 0 || !context.stats) return [];
    return [...marks, { at_ns: report.process.now_ns, live_bytes: context.stats.live_bytes,
        committed_bytes: context.stats.committed_bytes,
        /* The process's: marks of what is mapped have none. */
        resident_bytes: context.name === "mapped" ? null : memory.resident_bytes }];
}

/* Names of marks stand in rows below each other; one that has no room has its line alone. */
function drawMarks(u, marks, colour) {
    const ends = []; /* where the names of each row end */
    for (const mark of marks) {
        const x = u.valToPos((mark.at_ns - u.first) / 1e9, "x", true);
        if (!mark.name || x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
        u.ctx.save();
        u.ctx.strokeStyle = u.ctx.fillStyle = colour;
        u.ctx.beginPath();
        u.ctx.moveTo(x, u.bbox.top);
        u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
        u.ctx.stroke();
        const width = u.ctx.measureText(mark.name).width;
        const left = x + 8 + width < u.bbox.left + u.bbox.width ? x + 4 : x - 4 - width;
        const row = [0, 1, 2, 3, 4, 5].find((n) => !(ends[n] > left));
        if (row !== undefined) {
            ends[row] = left + width + 4;
            u.ctx.textAlign = "left";
            u.ctx.fillText(mark.name, left, u.bbox.top + (12 + 14 * row) * devicePixelRatio);
        }
        u.ctx.restore();
    }
}

let plotted;

function timeline() {
    const context = timed && pointsOf(timed).length > 1 ? timed : report.contexts.find((c) => pointsOf(c).length > 1);
    $("time").hidden = !context;
    if (!context) return;
    const at = report.contexts.indexOf(context);
    $("time").querySelector("h2").textContent = report.contexts.length > 1 && contexts[at] ? `Timeline of ${contexts[at]}` : "Timeline";
    $("plot").replaceChildren();
    const points = pointsOf(context), start = boundaries(context)[0];
    const first = start > 0 ? Math.min(start, points[0].at_ns) : points[0].at_ns;
    const style = getComputedStyle(document.documentElement);
    const [soft, line] = [style.getPropertyValue("--soft"), style.getPropertyValue("--line")];
    const axis = { stroke: soft, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    const series = [["live", "#2f6fdb"], ["committed", "#e08a1e"], ["resident", "#2a9d5c"]];
    const marks = [...(context.marks || []), ...decided(context, first)];
    marks.sort((a, b) => a.at_ns - b.at_ns);
    /* Where nothing is pointed at, the legend says what is now. */
    const now = (u, s, i) => u.data[s][i ?? u.data[s].length - 1];
    plotted = new uPlot({
        width: Math.max(280, $("plot").clientWidth), height: 260, scales: { x: { time: false } },
        cursor: { drag: { x: true, y: false, setScale: context !== timed } },
        axes: [{ ...axis, label: "time", values: (u, all) => all.map((s) => duration(s * 1e9)) },
            { ...axis, size: 80, incrs: d3.range(50).map((n) => 2 ** n), values: (u, all) => all.map((n) => bytes(n)) }],
        series: [{ label: "time", value: (u, n, s, i) => duration(now(u, 0, i) * 1e9) }, ...series.map(([label, stroke]) => ({ label, stroke, width: 2,
            value: (u, n, s, i) => (now(u, s, i) == null ? "" : bytes(now(u, s, i))) }))],
        hooks: {
            init: [(u) => (u.first = first)],
            draw: [(u) => drawMarks(u, marks, style.getPropertyValue("--mark"))],
            setSelect: [(u) => { if (context === timed && u.select.width > 3)
                choose(...[u.select.left, u.select.left + u.select.width].map((x) => first + u.posToVal(x, "x") * 1e9)); }],
        },
    }, [points.map((p) => (p.at_ns - first) / 1e9),
        ...series.map(([name]) => points.map((p) => p[`${name}_bytes`] ?? null))], $("plot"));
    const ends = (name) => [points[0], points[points.length - 1]].map((p) => bytes(p[`${name}_bytes`] ?? 0)).join(" to ");
    $("plot").setAttribute("role", "img");
    $("plot").setAttribute("aria-label", `Over ${duration(points[points.length - 1].at_ns - first)}: ` +
        series.filter(([name]) => points[0][`${name}_bytes`]).map(([name]) => `${name} ${ends(name)}`).join(", "));
    mark();
}

/* The interval for the keyboard. */
function interval() {
    $("span").hidden = !timed || before !== undefined;
    if ($("span").hidden) return;
    const at = boundaries(timed);
    for (const id of ["from", "to"]) {
        for (const t of at) element($(id), "option", duration(t - at[0])).value = t;
        $(id).onchange = () => choose(Number($("from").value), Number($("to").value));
    }
    [$("from").value, $("to").value] = span;
    keep();
    $("all").onclick = () => { $("by").value = "live"; choices(); };
}
