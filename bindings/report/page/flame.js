/* ---- Flame graph ---- */

const SMALLEST = 1 / 1000; // share below which frames are one until one zooms in
const colour = d3.scaleOrdinal(d3.schemeTableau10.map((c) => d3.interpolateRgb(c, "#fff")(0.35)));
let tree, shown, treeError;

function child(node, name, label) {
    let found = node.children.get(name);
    if (!found) node.children.set(name, (found = { name, label, value: 0, children: new Map(), parent: node }));
    return found;
}

function grow(list) {
    const root = { name: "all", value: 0, children: new Map() };
    const several = report.contexts.length > 1, group = $("group").value;
    for (const row of list) {
        const value = amount(row);
        if (!value) continue;
        const path = group === "inverted" ? [...row.seen].reverse() : group === "import" ? row.seen.slice(moduleOf(row) + 1) : row.seen;
        let node = root;
        node.value += value;
        if (several) (node = child(node, row.context, row.label)).value += value;
        if (group === "import") (node = child(node, row.module || "no import", row.label)).value += value;
        if (group === "label") (node = child(node, `[${row.label}]`, row.label)).value += value;
        for (const name of path) (node = child(node, name, row.label)).value += value;
    }
    return root;
}

function pruned(node, least) {
    const children = [];
    let [few, rest] = [0, 0];
    for (const c of node.children.values()) {
        if (c.value >= least) children.push(pruned(c, least));
        else [few, rest] = [few + 1, rest + c.value];
    }
    if (rest >= least) children.push({ name: `other: ${few} small frames`, value: rest, other: true, children: [] });
    return { name: node.name, value: node.value, real: node, children };
}

/* Of a file its name, with its folder where many files have that name: a frame is narrow. */
function brief(name) {
    return name.replace(/([(<])(?:[^()<>]*\/)?([^()<>/]+\/(?:init\.lua|__init__\.py)|(?!init\.lua|__init__\.py)[^()<>/]+)(:\d+)(?=[)>])/g,
                        "$1$2$3");
}

const share = (n) => `${((n / tree.value) * 100).toFixed(1)} % of all`;
const told = (d) => `${d.data.name}: ${bytes(d.data.value)}, ${share(d.data.value)}`;

/* One frame takes part in the order of the Tab key; the arrows lead from frame to frame, Enter zooms in. */
function keys(svg) {
    const frames = svg.querySelectorAll("g.frame"), of = new Map();
    svg.setAttribute("role", "tree");
    svg.setAttribute("aria-label", "Flame graph: arrows lead from frame to frame, Enter zooms in");
    for (const g of frames) {
        const d = d3.select(g).datum();
        of.set(d, g);
        g.setAttribute("role", "treeitem");
        g.setAttribute("aria-level", d.depth + 1);
        g.setAttribute("aria-label", told(d));
        g.setAttribute("tabindex", d.parent ? -1 : 0);
        g.onfocus = () => ($("hover").textContent = told(d));
    }
    const beside = (d, step) => {
        const all = (d.parent?.children || [d]).filter((c) => of.has(c)).sort((a, b) => a.x0 - b.x0);
        return all[all.indexOf(d) + step];
    };
    const largest = (d) => (d.children || []).filter((c) => of.has(c)).sort((a, b) => b.value - a.value)[0];
    svg.onkeydown = (event) => {
        const g = event.target.closest("g.frame"), d = g && d3.select(g).datum();
        if (!d) return;
        if (event.key === "Enter" || event.key === " ") into(d);
        const next = { ArrowDown: () => largest(d), ArrowUp: () => d.parent, ArrowLeft: () => beside(d, -1),
                       ArrowRight: () => beside(d, 1), Home: () => d.ancestors().pop() }[event.key]?.();
        if (next || event.key === "Enter" || event.key === " " || event.key.startsWith("Arrow")) event.preventDefault();
        if (!next) return;
        g.setAttribute("tabindex", -1);
        of.get(next).setAttribute("tabindex", 0);
        of.get(next).focus();
    };
}

/* A click on what all frames are in leads out. */
function into(d) {
    const real = d?.data.real;
    if (!real) return;
    const focused = $("flame").contains(document.activeElement);
    setTimeout(() => {
        zoom(real === shown ? real.parent || real : real);
        if (focused) $("flame").querySelector("g.frame")?.focus();
    });
}

function zoom(node) {
    shown = node;
    $("path").replaceChildren();
    const way = [];
    for (let n = node; n; n = n.parent) way.unshift(n);
    for (const n of way.slice(-12)) {
        const wide = n === tree && treeError > 0 ? ` ± ${bytes(treeError)}` : "";
        const made = element($("path"), "button", `${n.name} ${bytes(n.value)}${wide}`);
        made.dataset.value = n.value;
        made.onclick = () => zoom(n);
    }
    $("flame").replaceChildren();
    $("hover").textContent = "";
    if (!node.value) {
        const none = $("by").value === "change" ? "No stack grew" : "No stack has any";
        return element($("flame"), "p", $("filter").value ? `${none} that has "${$("filter").value}"` : none);
    }
    const chart = flamegraph.default().width(Math.max(280, $("flame").clientWidth)).cellHeight(20).minFrameSize(1)
        .transitionDuration(0).inverted(true).sort(true).tooltip(false).selfValue(false)
        .getName((d) => brief(d.data.name))
        .setColorMapper((d) => (d.data.other ? "#c3c8d1" : colour(d.data.name.replace(/.*\(|:\d+\)$/g, ""))))
        .onHover((d) => ($("hover").textContent = told(d)))
        .onClick(into);
    d3.select("#flame").datum(pruned(node, node.value * SMALLEST)).call(chart);
    keys($("flame").querySelector("svg"));
}

/* Why sums of a sampled profile are not the exact ones above. */
function estimates(list) {
    const by = $("by").value;
    treeError = Math.sqrt(sum(list, (r) => (amount(r) ? r[`${by}_var`] : 0)));
    const of = report.contexts.filter(sampled), noise = rows.filter((r) => r.noise && r.change).length;
    const exact = { live: counted(report, "live_bytes"), peak: counted(report, "peak_bytes") }[by];
    const words = [];
    if (of.length && treeError > 0)
        words.push(`Estimates of samples, one in ${bytes(of[0].profile.mean_bytes)}` + (list.length === rows.length && exact
            ? `: ${bytes(tree.value)} ± ${bytes(treeError)} beside ${bytes(exact)} exactly.` : `; ± ${bytes(treeError)}.`));
    if (by === "change" && noise) words.push(`Left out, and below in the table: ${plain(noise)} that the samples alone explain.`);
    if (by === "kept") words.push(`${spanText()}. A stack with less than a 10,000th of what is live has no history.`);
    $("estimate").textContent = words.join(" ");
}
