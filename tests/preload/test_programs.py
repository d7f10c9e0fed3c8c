"""Programs that others wrote, with and without the shim: the same output."""

import os

from shim import HELPERS, PYTHON, Case, main

BASH = r"""
declare -A count
for word in $(seq 1 3000); do key=k$((word % 97)); count[$key]=$((${count[$key]:-0} + word)); done
for key in $(printf '%s\n' "${!count[@]}" | sort); do echo "$key ${count[$key]}"; done
text=$(for i in {1..2000}; do printf 'line %d\n' $i; done)
echo "${#text} ${text//line/row}" | cksum
shopt -s extglob; f() { local a=("$@"); echo "${a[@]:5:10}" "${#a[@]}"; }; f {1..500}
while read -r a b; do last=$b; done <<<"$text"; echo "$last"
(trap 'echo bye' EXIT; exit 3); echo $?
coproc cat; echo through >&"${COPROC[1]}"; read -r line <&"${COPROC[0]}"; echo "$line"
"""

PYTHON_PROGRAM = r"""
import collections, concurrent.futures, functools, hashlib, json, multiprocessing, os, random, re, sqlite3, threading

def work(seed):
    r = random.Random(seed)
    words = ["".join(r.choices("abcdef", k=r.randrange(1, 30))) for _ in range(4000)]
    table = collections.Counter(w[:2] for w in words)
    text = json.dumps({"words": words, "table": table}, sort_keys=True)
    back = json.loads(text)
    parts = re.findall(r"a[b-d]+e", text)
    return hashlib.sha256((text + "".join(parts) + str(len(back["words"]))).encode()).hexdigest()

with concurrent.futures.ThreadPoolExecutor(6) as pool:
    threads = list(pool.map(work, range(12)))
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(3) as pool:
        assert list(pool.map(work, range(12))) == threads
    print("\n".join(threads))
    db = sqlite3.connect(":memory:")
    db.execute("create table t (a, b)")
    db.executemany("insert into t values (?, ?)", ((i % 50, "x" * (i % 200)) for i in range(20000)))
    print(db.execute("select a, sum(length(b)) from t group by a order by 2, 1 limit 5").fetchall())
    big = sorted(str(i) for i in range(200000)); print(len("".join(big)))
    for i in range(20):
        pid = os.fork()
        if pid == 0:
            os._exit(len(work(i)) - 64)
        assert os.waitpid(pid, 0)[1] == 0
"""

GIT = r"""
set -e
git init -q -b main repo; cd repo
for i in $(seq 1 150); do mkdir -p d$((i % 7)); seq $i $((i * 11)) >d$((i % 7))/f$i; done
git add -A; git commit -q -m first
for i in 3 5 8; do seq 1 $((i * 999)) >d$((i % 7))/f$i; git commit -qam "change $i"; done
git checkout -q -b side HEAD~2; git mv d0/f7 d1/g7; git commit -qm move; git checkout -q main; git merge -q side -m merge
git log --stat --format='%H %s'; git diff HEAD~3 | cksum; git gc -q; git fsck --full --strict
git repack -adfq --threads=4; git grep -c 777 | sort | head -20; git blame d1/g7 | cksum
git archive HEAD | tar t | wc -l; git clone -q . ../copy; git -C ../copy rev-parse HEAD
"""

SQL = """
create table t (id integer primary key, name text, value real);
insert into t with recursive c(n) as (select 1 union all select n + 1 from c limit 30000)
    select n, printf('name %d', n * 7919 % 10007), n * 0.5 from c;
create index i on t (name);
select count(*), count(distinct name), sum(value) from t;
select name, group_concat(id) from t group by name order by name limit 3;
create virtual table f using fts5 (body);
insert into f select name || ' ' || id from t where id % 3 = 0;
select count(*) from f where f match '100*';
delete from t where id % 2; vacuum; pragma integrity_check;
with recursive fib(a, b) as (select 0, 1 union all select b, a + b from fib limit 50) select max(a) from fib;
"""

CXX = r"""
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>
int main() {
    std::map<std::string, std::vector<std::unique_ptr<std::string>>> m;
    for (int i = 0; i < 20000; i++) m[std::to_string(i % 997)].push_back(std::make_unique<std::string>(i % 300, 'x'));
    size_t n = 0;
    std::regex r("([0-9])\\1");
    for (auto &[k, v] : m) if (std::regex_search(k, r)) for (auto &s : v) n += s->size();
    std::vector<std::thread> t;
    std::vector<std::string> out(4);
    for (int i = 0; i < 4; i++) t.emplace_back([&, i] { std::ostringstream s; for (int k = 0; k < 5000; k++) s << k * i; out[i] = s.str(); });
    for (auto &x : t) x.join();
    for (auto &s : out) n += s.size();
    std::cout << n << "\n";
}
"""

NODE = r"""
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const crypto = require('crypto'), zlib = require('zlib');
function work(seed) {
    const h = crypto.createHash('sha256'), map = new Map();
    for (let i = 0; i < 20000; i++) map.set('k' + (i * seed) % 5003, Buffer.alloc(i % 3000, i));
    for (const [k, v] of map) { h.update(k); h.update(v); }
    const packed = zlib.gzipSync(JSON.stringify([...map.keys()]));
    h.update(zlib.gunzipSync(packed));
    return h.digest('hex');
}
if (!isMainThread) parentPort.postMessage(work(workerData));
else Promise.all([1, 2, 3, 4].map(n => new Promise((done, failed) => {
    const w = new Worker(__filename, { workerData: n }); w.on('message', done); w.on('error', failed);
}))).then(list => { console.log(list.join('\n')); console.log(work(7)); });
"""


class Programs(Case):
    def test_bash(self):
        self.need("bash")
        _, found = self.both(["bash", self.path("script", BASH)])
        self.assertGreater(len(found), 3)  # its subshells report, too

    def test_python(self):
        if not os.path.exists(PYTHON):
            self.skipTest(f"no {PYTHON}")
        _, found = self.both([PYTHON, self.path("program.py", PYTHON_PROGRAM)])
        self.assertGreaterEqual(max(r["threads"] for r in found), 7)

    def test_python_with_all_objects_in_the_shim(self):
        if not os.path.exists(PYTHON):
            self.skipTest(f"no {PYTHON}")
        _, found = self.both([PYTHON, self.path("program.py", PYTHON_PROGRAM)], PYTHONMALLOC="malloc")
        self.assertGreater(max(r["peak live"] for r in found), 10 << 20)

    def test_git(self):
        self.need("git", "tar")
        who = {
            f"GIT_{role}_{key}": value
            for role in ("AUTHOR", "COMMITTER")
            for key, value in (("NAME", "A"), ("EMAIL", "a@example.org"), ("DATE", "2026-01-01T00:00:00Z"))
        }
        _, found = self.both(["bash", self.path("script", GIT)], **who)
        self.assertGreater(len(found), 30)

    def test_gcc(self):
        self.need("gcc", "g++")
        source = self.path("program.cpp", CXX)
        script = (
            f"g++ -std=c++17 -O1 -pthread -S {source} -o program.s && g++ -pthread program.s -o program"
            " && ./program && sha256sum program.s program"
        )
        _, found = self.both(["bash", "-c", script])
        self.assertGreater(max(r["peak live"] for r in found), 8 << 20)  # the compiler itself

    def test_sqlite(self):
        self.need("sqlite3")
        self.both(["sqlite3", "file.db"], stdin=SQL)

    def test_php(self):
        self.need("php")  # it loads its extensions with RTLD_DEEPBIND
        self.both(["php", "-m"])
        self.both(["php", "-r", "echo json_encode(array_map('md5', range(1, 2000)));"])

    def test_fork(self):
        # A hang ends by the time limit of start().
        for what in ("fork-beside-flush", "fork-in-handler"):
            with self.subTest(what=what):
                plain, _ = self.both([os.path.join(HELPERS, "preload_helper"), what])
                self.assertEqual(plain.stdout, "0 bad\n")

    def test_node(self):
        self.need("node")
        _, [report] = self.both(["node", self.path("program.js", NODE)])
        self.assertGreater(report["threads"], 4)


if __name__ == "__main__":
    main()
