/* ---- Head ---- */

const runtime = report.process.runtime || {};
/* The names of the program and of the file that it runs; all of the command line is below. */
const command = report.process.command || [];
const last = (name) => name.replace(/\/+$/, "").split("/").pop();
const script = command.slice(1).find((word) => !word.startsWith("-"));
$("title").textContent = [command[0], script].filter(Boolean).map(last).join(" ") || "hakmem";
document.title = command.length ? `${$("title").textContent}: hakmem` : "hakmem";
if (command.length) $("line").textContent = command.join(" ");
else $("command").remove();
/* Of a runtime's version the number: CPython's goes on with its compiler. */
function about(place, of, which) {
    const parts = [
        of.pid ? `process ${of.pid}` : "",
        which,
        of.time ? `${new Date(of.time * 1000).toISOString().slice(0, 19)}Z` : "",
    ].filter(Boolean);
    /* No line ends within a part. */
    for (const [i, part] of parts.entries()) {
        if (i) place.append(", ");
        element(place, "span", part);
    }
    return parts.length;
}
about($("process"), report.process, `${runtime.name || ""} ${(runtime.version || "").split(" ")[0]}`.trim());
if (before) {
    $("other").append("Compared with ");
    if (!about($("other"), before.process || {}, "")) $("other").append("another report");
} else $("other").remove();

/* ---- What is missing, and what grows ---- */

for (const context of report.contexts) {
    const { dropped_stacks: missing = 0, dropped_samples: some = 0, dropped_bytes: lost = 0 } = context.profile || {};
    if (!missing && !some) continue;
    const known = sum(context.stacks || [], (row) => row.live_bytes), live = (context.stats || {}).live_bytes;
    element($("verdicts"), "div",
            `${missing ? `${missing} stacks` : `${some} samples`} are missing: the table of the profile was full` +
            (lost > 0 ? `. Of what was allocated, they had ${bytes(lost)}` : "") +
            (live > known ? `. The stacks below have ${bytes(known)} of ${bytes(live)} that are live` : ""), "verdict");
}
const named = new Map();
if (report.contexts.some((c) => c.verdicts))
    for (const s of stacks) if (!named.has(`${s.at} ${s.id}`)) named.set(`${s.at} ${s.id}`, s);
for (const [at, context] of report.contexts.entries()) {
    const words = {leak: "Leak?", growth: "Grows:", filling: "Fills:"};
    const order = (v) => [["filling", "growth", "leak"].indexOf(v.kind), v.bytes_a_window || 0];
    const leaksFirst = (a, b) => order(b)[0] - order(a)[0] || order(b)[1] - order(a)[1];
    for (const verdict of [...(context.verdicts || [])].sort(leaksFirst)) {
        const row = named.get(`${at} ${verdict.stack}`);
        const said = element($("verdicts"), row ? "button" : "div",
                `${words[verdict.kind] || "Grows:"} ${row ? `${row.site}, ${row.label}` : "?"}: ${verdict.evidence}`,
                "verdict");
        if (!row) continue;
        said.title = "Show the stack";
        said.onclick = () => pick(row);
    }
}

/* ---- Sums ---- */

const memory = report.memory || {};
/* What is not known has no card. */
const counted = (whole, name) => (whole.contexts.some((c) => c.stats) ? stat(whole, name) : undefined);
const resident = (whole, name) => (whole.memory || {})[name] || undefined;
for (const [name, of, key] of [
    ["live at the end", counted, "live_bytes"],
    ["live at the peak", counted, "peak_bytes"],
    ["committed", counted, "committed_bytes"],
    ["process resident", resident, "resident_bytes"],
    ["peak resident", resident, "peak_resident_bytes"],
]) {
    const value = of(report, key), old = before ? of(before, key) : undefined;
    if (value === undefined) continue;
    const card = element($("cards"), "div", undefined, "card");
    element(card, "b", bytes(value)).dataset.value = value;
    element(card, "span", name + (old === undefined ? "" : ` (${bytes(value - old, true)})`));
}

const measures = [["live", "live at the end"], ["peak", "live at the peak"], ["alloc", "allocated"]];
if (before) measures.unshift(["change", "growth since the other report"]);
else if (stacks.some((s) => s.history?.kept)) measures.push(["kept", "allocated in an interval, still live"]);
for (const [value, name] of measures) element($("by"), "option", name).value = value;

/* Checkboxes for frames that there are. */
const interpreted = stacks.some((r) => r.numbers.some((f) => !r.of.native[f]));
const frameKinds = [...new Set(stacks.map((r) => r.of))]; // one a context
for (const [id, which] of [["imports", (of) => of.imports], ["natives", (of) => (interpreted ? of.native : [])]])
    $(id).parentElement.hidden = !frameKinds.some((of) => which(of).some(Boolean));
if (!frameKinds.some((of) => of.modules.some(Boolean))) $("group").querySelector("[value=import]").remove();
