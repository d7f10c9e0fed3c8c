// What a page shows first: node screens.mjs PLAYWRIGHT FOLDER PAGE...
//
// PAGE is NAME=ADDRESS=SELECTOR: the page opens at 1280x900 in light colours and at 390x844 in dark ones; its title fits
// one line, the first element that SELECTOR names is in the first screen, nothing is wider than the screen, and no text
// or control lies over another one. NAME=ADDRESS=svg is a picture, whose texts lie within it and not over one another.
// Pictures of all go to FOLDER, NAME-1280.png and NAME-390.png.
import { launch } from "./browser.mjs";

const [playwright, folder, ...pages] = process.argv.slice(2);
const browser = await launch(playwright);

// Runs in the page. What is wrong, a line each.
function look(main) {
    const wrong = [], [width, height] = [innerWidth, innerHeight];
    const words = (e) => `<${e.tagName.toLowerCase()}> "${(e.textContent || e.placeholder || "").trim().slice(0, 40)}"`;
    const scrolls = (e) => e && e !== document.body && (getComputedStyle(e).overflowX !== "visible" || scrolls(e.parentElement));
    const visible = (e) => e.checkVisibility({ checkVisibilityCSS: true, checkOpacity: true });
    const texts = (e) => [...e.childNodes].filter((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
    const rects = (node) => {
        const range = document.createRange();
        range.selectNodeContents(node);
        return [...range.getClientRects()].filter((r) => r.width && r.height);
    };

    const title = document.querySelector("h1");
    if (!title?.textContent.trim()) wrong.push("there is no title");
    else if (new Set(rects(title).map((r) => Math.round(r.top))).size !== 1) wrong.push(`the title has several lines: ${words(title)}`);
    else if (title.scrollWidth > title.clientWidth) wrong.push(`the title is cut: ${words(title)}`);

    const first = document.querySelector(main)?.getBoundingClientRect();
    if (!first) wrong.push(`there is no ${main}`);
    else if (first.width < 100 || first.height < 16) wrong.push(`${main} is ${first.width} x ${first.height}`);
    else if (first.top + Math.min(first.height, 100) > height) wrong.push(`${main} begins at ${first.top}, below the first screen`);

    const wider = document.documentElement.scrollWidth - width;
    if (wider > 0) wrong.push(`the page is ${wider} wider than the screen`);

    // Of each element the boxes of its own text, or itself if it is a control.
    const boxes = [];
    for (const e of document.querySelectorAll("body *")) {
        if (e.closest("script, style, option, svg, #map") || !visible(e)) continue;
        const control = /^(INPUT|SELECT|BUTTON|TEXTAREA|CANVAS)$/.test(e.tagName);
        const own = control ? [e.getBoundingClientRect()] : texts(e).flatMap(rects);
        for (const r of own) {
            if (r.top >= height || r.bottom <= 0) continue;
            if ((r.left < -1 || r.right > width + 1) && !scrolls(e)) wrong.push(`${words(e)} reaches from ${r.left} to ${r.right}`);
            boxes.push({ e, r });
        }
        if (control && e.tagName === "BUTTON" && e.scrollWidth > e.clientWidth + 1 && !scrolls(e)) wrong.push(`${words(e)} is cut`);
    }
    for (const e of document.querySelectorAll("#flame svg, #map")) boxes.push({ e, r: e.getBoundingClientRect() });
    for (let i = 0; i < boxes.length; i++)
        for (let k = 0; k < i; k++) {
            const [a, b] = [boxes[i], boxes[k]];
            if (a.e === b.e || a.e.contains(b.e) || b.e.contains(a.e)) continue;
            const across = Math.min(a.r.right, b.r.right) - Math.max(a.r.left, b.r.left);
            const down = Math.min(a.r.bottom, b.r.bottom) - Math.max(a.r.top, b.r.top);
            if (across > 2 && down > 3 && Math.max(a.r.top, b.r.top) < height) wrong.push(`${words(a.e)} lies over ${words(b.e)}`);
        }
    return wrong;
}

// The same for a picture that is opened by itself.
function lookAtPicture() {
    const wrong = [], box = document.documentElement.getBoundingClientRect();
    const texts = [...document.querySelectorAll("text")].map((e) => ({ text: e.textContent, r: e.getBoundingClientRect() }));
    for (const [i, { text, r }] of texts.entries()) {
        if (r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 || r.bottom > box.bottom + 1) wrong.push(`"${text}" is cut`);
        for (const other of texts.slice(0, i)) {
            const across = Math.min(r.right, other.r.right) - Math.max(r.left, other.r.left);
            const down = Math.min(r.bottom, other.r.bottom) - Math.max(r.top, other.r.top);
            if (across > 2 && down > 3) wrong.push(`"${text}" lies over "${other.text}"`);
        }
    }
    return wrong;
}

const wrong = [];
try {
    // One tab for each screen: a process of the browser for each page would take most of the time.
    for (const [width, height, colorScheme] of [[1280, 900, "light"], [390, 844, "dark"]]) {
        const tab = await browser.newPage({ viewport: { width, height }, colorScheme });
        let name;
        tab.on("pageerror", (error) => wrong.push(`${name}: ${error}`));
        for (const page of pages) {
            const [, its, address, main] = /^([\w-]+)=(.*?)=(.*)$/.exec(page);
            name = its;
            await tab.goto(address);
            await tab.waitForSelector(main);
            await tab.waitForTimeout(100);
            await tab.screenshot({ path: `${folder}/${name}-${width}.png` });
            for (const line of await tab.evaluate(main === "svg" ? lookAtPicture : look, main)) wrong.push(`${name} at ${width}: ${line}`);
        }
        await tab.close();
    }
} finally {
    await browser.close();
}
console.log(wrong.length ? wrong.join("\n") : "passed");
process.exit(wrong.length ? 1 : 0);
