// Objects, strings, arrays, closures, garbage of all of them. ECMAScript 5 and print(), for any machine.
function Tree(left, right) {
    this.left = left;
    this.right = right;
}
function build(depth) {
    return depth === 0 ? new Tree(null, null) : new Tree(build(depth - 1), build(depth - 1));
}
function count(tree) {
    return tree.left ? 1 + count(tree.left) + count(tree.right) : 1;
}
function trees(depth, times) {
    var sum = 0;
    for (var i = 0; i < times; i++) sum += count(build(depth));
    return sum;
}
print("trees", trees(10, 10), count(build(12)));

// Words of a small generator, counted in an object, sorted, written and read as JSON.
var seed = 42;
function random(n) {
    seed = (seed * 16807) % 2147483647;
    return seed % n;
}
var syllables = ["ka", "to", "mi", "re", "su", "no", "li", "va", "pe", "go"];
function word() {
    var text = "";
    for (var k = 1 + random(3); k >= 0; k--) text += syllables[random(10)];
    return text;
}
var words = [];
for (var i = 0; i < 6000; i++) words.push(word());
var text = words.join(" ");
var counts = {};
text.split(" ").forEach(function (w) {
    counts[w] = (counts[w] || 0) + 1;
});
var rows = Object.keys(counts).map(function (w) {
    return {word: w, count: counts[w], tags: [w.length, w.charAt(0)]};
});
rows.sort(function (a, b) {
    return b.count - a.count || (a.word < b.word ? -1 : 1);
});
var written = JSON.stringify(rows);
var read = JSON.parse(written);
print("words", text.length, rows.length, read[0].word, read[0].count, written.length, read.length);
print("replaced", text.replace(/ka(to|mi)/g, function (all, rest) { return rest + "-"; }).length);

// Closures that share a variable, and some that do not.
function counter(step) {
    var n = 0;
    return {
        next: function () { n += step; return n; },
        reset: function () { n = 0; }
    };
}
var counters = [], total = 0;
for (var c = 0; c < 1500; c++) counters.push(counter(c));
for (var round = 0; round < 5; round++)
    for (c = 0; c < counters.length; c++) total += counters[c].next();
print("closures", total);

// A matrix, lists that grow and shrink, cycles for a collector.
var matrix = [];
for (var y = 0; y < 120; y++) {
    matrix[y] = [];
    for (var x = 0; x < 120; x++) matrix[y][x] = (x * y) % 17 / 2;
}
var trace = 0;
for (y = 0; y < 120; y++)
    for (x = 0; x < 120; x++) trace += matrix[y][x] * matrix[x][y];
var queue = [];
for (i = 0; i < 10000; i++) {
    queue.push({n: i});
    if (i % 3 === 0) queue.shift();
}
for (i = 0; i < 10000; i++) {
    var a = {}, b = {other: a};
    a.other = b;
}
print("matrix", trace, queue.length, queue[7].n);
