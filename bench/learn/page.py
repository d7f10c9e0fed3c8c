"""Tables and plots of the evaluation, from what run.py measured."""

import statistics
from pathlib import Path

import workloads as w

PRICE = 0.00005  # hak_learner_options.price: of a MiB held, as a share of the time
NS_AN_INSTRUCTION = 0.25
WARM, LAST = 4, 16  # windows, at least
WINS = 0.03  # a difference that counts
LEARNERS = ("ucb1", "ucb1 progress", "elo", "both")


def passes(run, windows):
    """Windows of the whole passes that cover so many."""
    return -(-windows // run["pass"]) * run["pass"]


def steady(run):
    """The whole passes after the first windows."""
    return run["windows"][passes(run, WARM):]


def startup(run):
    """The first pass."""
    return run["windows"][:run["pass"]]


class Workload:
    def __init__(self, fixed):
        self.fixed = fixed
        base = fixed["default"]
        self.instructions = base["instructions"]
        self.unit = self.cpu([base["instructions"]], steady(base))
        self.costs = {p: self.cost([self.instructions_of(p)], steady(run)) for p, run in fixed.items()}
        self.best = min(self.costs, key=self.costs.get)
        self.goal = self.settled(self.best)

    def instructions_of(self, policy):
        """Of an event. What changes pages alone takes the default's."""
        return self.fixed[policy]["instructions"] or self.instructions

    def settled(self, policy):
        """What the policy costs when the instructions are those of a later pass, as a learner's are."""
        run = self.fixed[policy]
        late = run["instructions"] and run.get("settled") or self.fixed["default"].get("settled") or self.instructions
        return self.cost([late], steady(run))

    def cpu(self, instructions, windows):
        """ns an event; instructions: of an event in each window, or in all."""
        each = instructions * (len(windows) // len(instructions))
        ns = sum(x["events"] * i * NS_AN_INSTRUCTION + x["ns"] for x, i in zip(windows, each, strict=True))
        return ns / sum(x["events"] for x in windows)

    def cost(self, instructions, windows):
        """CPU time, the default's is 1, and the price of what is held."""
        held = statistics.fmean(x["held"] for x in windows) / (1 << 20)
        return self.cpu(instructions, windows) / self.unit + PRICE * held

    def second(self, run):
        """The start and the steady state of a run with a saved policy, relative to the best fixed policy."""
        best = self.fixed[self.best]
        start = self.cost([run["first"]], startup(run)) / self.cost([best["first"]], startup(best)) - 1
        return start, self.cost([run["instructions"]], steady(run)) / self.costs[self.best] - 1

    def until_frozen(self, run):
        """What the windows until the freeze cost more than the best policy's steady ones, in these."""
        windows = run["windows"][:frozen_at(run) or len(run["windows"])]
        each = (self.cost(self.played([x]), [x]) / self.goal - 1 for x in windows)
        return sum(each)

    def parts(self, run):
        """Of what the last passes cost more than the best policy: instructions, pages and calls, memory held."""
        best, windows = steady(self.fixed[self.best]), run["windows"][-passes(run, LAST):]
        late = self.fixed[self.best if self.fixed[self.best]["instructions"] else "default"].get("settled")
        of = [(self.played(windows), windows), ([late or self.instructions_of(self.best)], best)]
        cpu = [self.cpu(instructions, x) / self.unit for instructions, x in of]
        pages = [sum(x["ns"] for x in y) / sum(x["events"] for x in y) / self.unit for _, y in of]
        held = [PRICE * statistics.fmean(x["held"] for x in y) / (1 << 20) for _, y in of]
        mine, its = ([c - p, p, h] for c, p, h in zip(cpu, pages, held, strict=True))
        return [(a - b) / self.goal for a, b in zip(mine, its, strict=True)]

    def played(self, windows):
        """Instructions of an event under the policy of each window, which the context got when it was there."""
        policies = [w.ELO[x["policy"]] if "policy" in x else w.MODES[x["mode"]] for x in windows]
        return [self.fixed[p]["late"] or self.instructions for p in policies]

    def learned(self, run):
        """Of the last whole passes."""
        windows = run["windows"][-passes(run, LAST):]
        return self.cost(self.played(windows), windows)


def percent(x):
    return f"{x * 100:+.1f} %" if abs(x) >= 0.0005 else "0"


def frozen_at(run):
    return next((d["window"] for d in run["decisions"] if d["phase"] == "frozen"), None)


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def of_workloads(all_of, result):
    rows = []
    for name, one in all_of.items():
        runs = result["learned"].get(name, {})
        row = [name, one.best, percent(one.settled("default") / one.goal - 1)]
        row += [percent(one.learned(runs[k]) / one.goal - 1) if k in runs else "" for k in LEARNERS]
        row += [(frozen_at(runs[k]) or "never") if k in runs else "" for k in ("ucb1", "ucb1 progress")]
        rows.append([*row, runs["ucb1"]["windows"][-1]["mode"] if runs else ""])
    header = ["workload", "best fixed", "default", "UCB1", "UCB1, progress", "Elo", "Elo, then UCB1", "UCB1 froze at", "progress", "UCB1's mode"]
    return table(header, rows)


def within(all_of, result):
    """How many workloads each learner brings to within 3 % of the best fixed policy."""
    rows = []
    for kind, names in (("made on these", [n for n in all_of if n not in w.HELD_OUT]), ("held out", [n for n in all_of if n in w.HELD_OUT])):
        row = [f"{kind}: {len(names)}"]
        for learner in LEARNERS:
            runs = [(all_of[n], result["learned"][n][learner]) for n in names if learner in result["learned"].get(n, {})]
            regrets = [one.learned(run) / one.goal - 1 for one, run in runs]
            row.append(f"{sum(r <= WINS for r in regrets)}, mean {percent(statistics.fmean(regrets))}" if regrets else "")
        rows.append(row)
    return table(["workloads", "UCB1", "UCB1, progress", "Elo", "Elo, then UCB1"], rows)


def of_losses(all_of, result):
    """Where UCB1 loses, and what a second run with its policy comes to."""
    rows = []
    for name, one in all_of.items():
        run = result["learned"][name]["ucb1"]
        row = [name, f"{one.until_frozen(run):.1f}", *map(percent, one.parts(run))]
        rows.append([*row, *map(percent, one.second(result["learned"][name]["second"]))])
    header = ["workload", "until frozen, windows", "instructions", "pages, calls", "memory held", "second run: start", "second run: steady"]
    return table(header, rows)


def of_policies(all_of):
    rows = []
    for policy in w.POLICIES:
        gains = {name: 1 - one.costs[policy] / one.costs["default"] for name, one in all_of.items()}
        wins = sorted((g, n) for n, g in gains.items() if g >= WINS)[::-1]
        most = ", ".join(f"{n} {percent(-g)}" for g, n in wins[:3]) or "none"
        worst = min(gains, key=gains.get)
        if policy != "default":
            rows.append([policy, len(wins), sum(g <= -WINS for g in gains.values()), most, f"{worst} {percent(-gains[worst])}"])
    return table(["policy", "better on", "worse on", "by most", "the worst"], rows)


def of_changes(all_of, result):
    rows = []
    for name, runs in result["changes"].items():
        second = all_of[w.CHANGES[name][1]]
        for learner in runs:
            run = runs[learner]
            half = run["windows"][len(run["windows"]) // 2]["window"]
            after = [d for d in run["decisions"] if d["window"] > half]
            noticed = next((d["window"] - half for d in after if d["decision"] in (5, 6, 2)), None)
            regret = second.learned(run) / second.goal - 1
            rows.append([name, learner, noticed if noticed is not None else "" if learner == "elo" else "never", percent(regret)])
    return table(["work", "learner", "noticed after windows", "regret at the end"], rows)


def of_states(result):
    rows = []
    for name, runs in result["states"].items():
        for policy, run in runs.items():
            less = percent(run["instructions"] / runs["default"]["instructions"] - 1)
            sizes = next((s.split()[1] for s in run["text"].splitlines() if s.startswith("slab_sizes")), "")
            rows.append([f"{name}, {policy}", f"{run['events']:,}", f"{run['instructions']:,.0f}", less, f"{run['held'] >> 10} KiB", sizes])
    return table(["life, policy", "events", "instructions", "to default", "held at its end", "slab_sizes"], rows)


def plot(all_of, result, file):
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams.update({"svg.hashsalt": "hakmem", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3})
    names = [n for n in ("waves100", "waves200", "grow400", "mix500k") if n in result["learned"]]
    figure, axes = pyplot.subplots(1, len(names), figsize=(3.2 * len(names), 2.8), squeeze=False)
    for axis, name in zip(axes[0], names, strict=True):
        one = all_of[name]
        for learner in LEARNERS:
            total, curve = 0, []
            for x in result["learned"][name][learner]["windows"]:
                total += one.cost(one.played([x]), [x]) - one.goal
                curve.append(total)
            axis.plot(curve, label=learner)
        axis.plot([i * (one.settled("default") - one.goal) for i in range(len(curve))], "k:", label="default")
        axis.set(title=name, xlabel="window")
    axes[0][0].set_ylabel("regret so far, windows")
    axes[0][0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})


def write(result, file):
    all_of = {name: Workload(fixed) for name, fixed in result["fixed"].items()}
    tables = [("Workloads", of_workloads(all_of, result)), ("Policies", of_policies(all_of))]
    if result["learned"]:
        tables[1:1] = [("How many are within 3 %", within(all_of, result)), ("Where UCB1 loses, and the second run", of_losses(all_of, result))]
    if result["changes"]:
        tables.append(("The work changes", of_changes(all_of, result)))
    if result.get("states"):
        tables.append(("Contexts that live for a request", of_states(result)))
    for title, text in tables:
        print(f"\n{title}\n\n{text}")
    if file:
        head, found, rest = file.read_text().partition("<!-- begin learn -->\n")
        tail = rest.partition("<!-- end learn -->")[2]
        if not found:
            raise SystemExit(f"learn: {file} has no <!-- begin learn -->")
        body = "".join(f"### {title}\n\n{text}\n\n" for title, text in tables)
        plot(all_of, result, Path(file).with_suffix(".svg"))
        body += f"![Regret so far]({Path(file).with_suffix('.svg').name})\n\n"
        where = result["machine"]
        of_fixed = f" (fixed policies: {result['fixed_commit']})" if "fixed_commit" in result else ""
        body += f"`scripts/bench learn`, {result['date']}, commit {result['commit']}{of_fixed}, {where['cpu']}, {where['cpus']} CPUs, Linux {where['kernel']}; a page fault is {result['fault_ns']} ns.\n"
        file.write_text(head + found + body + "<!-- end learn -->" + tail)
