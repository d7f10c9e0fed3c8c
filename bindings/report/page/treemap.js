/* ---- Treemap ---- */

const LINE = 16, LINES = 44; // pixels that a line of a tile takes, and that three take

/* The sites of a label; those too small for a tile of their own are one tile. */
function tiles(label, sites, least) {
    const large = sites.filter((s) => s[1] >= least).map(([site, value]) => ({ label, site, value }));
    const rest = sum(sites, (s) => (s[1] < least ? s[1] : 0));
    const few = sites.length - large.length;
    return rest > 0 ? [...large, { label, site: `${few} ${large.length ? "other sites" : "sites"}`, value: rest, rest: true }]
        : large;
}

function map(list) {
    const box = $("map");
    box.replaceChildren();
    $("where").hidden = !sum(list, amount);
    if ($("where").hidden) return;
    const labels = d3.rollups(list, (of) => d3.rollups(of, (r) => sum(r, amount), (r) => r.where), (r) => r.label);
    const least = sum(list, amount) / 3000;
    const data = { children: labels.map(([label, sites]) => ({ label, children: tiles(label, sites, least) })) };
    const root = d3.hierarchy(data).sum((d) => d.value || 0).sort((a, b) => b.value - a.value);
    d3.treemap().size([box.clientWidth, box.clientHeight]).paddingInner(1).paddingOuter(2)
        .paddingTop((node) => (node.depth === 1 ? 18 : 0))(root);
    for (const node of root.descendants()) {
        if (node.depth === 0 || !node.value) continue;
        const { label, site, rest } = node.data, whole = node.depth === 1, width = node.x1 - node.x0;
        const text = `${whole ? label : site} ${bytes(node.value)}`;
        const height = node.y1 - node.y0, low = height < LINES ? "low" : "";
        const tile = element(box, "div", width > 40 && height >= LINE ? brief(text) : "", whole ? "label" : low);
        tile.title = whole ? text : `${label}: ${text}`;
        tile.dataset.value = node.value;
        Object.assign(tile.style, { left: `${node.x0}px`, top: `${node.y0}px`, width: `${width}px`,
            height: `${height}px` });
        if (!whole) tile.style.background = colour(label);
        tile.setAttribute("aria-label", tile.title);
        button(tile, () => { $("filter").value = whole || rest ? label : site; show(); });
    }
}

