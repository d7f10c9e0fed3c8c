/* ---- All together ---- */

function choices() {
    show();
    mark();
}

const contexts = namesOf(report);
const labels = report.contexts.flatMap((c, at) => (c.labels || []).map((l) => ({ ...l, context: contexts[at] })));
$("labels").hidden = labels.length === 0;
table("labels", [["live_bytes", "live", true, size], ["live_blocks", "blocks", true, plain], ["name", "label"],
    ["context", "context"]], labels, "live_bytes");
$("profile").hidden = $("stacks").hidden = $("functions").hidden = document.querySelector(".tools").hidden = rows.length === 0;
$("bare").hidden = rows.length > 0;
interval();
if (rows.length > 0) show();
else $("time").before($("labels"));
parts();
holes();
timeline();
for (const id of ["by", "group", "imports", "natives"]) $(id).onchange = choices;
let wait;
$("filter").oninput = () => { clearTimeout(wait); wait = setTimeout(show, 200); };
let width = innerWidth;
addEventListener("resize", () => {
    if (width === innerWidth) return;
    width = innerWidth;
    clearTimeout(wait);
    wait = setTimeout(() => { if (rows.length > 0) show(); timeline(); }, 200);
});
