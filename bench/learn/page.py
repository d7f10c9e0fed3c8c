"""Tables and plots of the evaluation, from what run.py measured."""

import statistics
from pathlib import Path

import workloads as w

PRICE = 0.00005  # hak_learner_options.price: of a MiB held, as a share of the time
NS_AN_INSTRUCTION = 0.25
WARM, LEAST = 4, 8
WINS = 0.03  # a difference that counts
LEARNERS = ("ucb1", "ucb1 progress", "elo")


def steady(windows):
    """Whole passes where a pass is long, else without the first windows."""
    return windows if len(windows) > LEAST else windows[WARM:]


class Workload:
    def __init__(self, fixed):
        self.fixed = fixed
        base = fixed["default"]
        self.instructions = base["instructions"]
        self.unit = self.cpu(base, steady(base["windows"]))
        self.costs = {p: self.cost(run, steady(run["windows"])) for p, run in fixed.items()}
        self.best = min(self.costs, key=self.costs.get)

    def cpu(self, run, windows):
        """ns an event. What changes pages alone takes the default's instructions."""
        instructions = run.get("instructions") or self.instructions
        events = sum(x["events"] for x in windows)
        return instructions * NS_AN_INSTRUCTION + sum(x["ns"] for x in windows) / events

    def cost(self, run, windows):
        """CPU time, the default's is 1, and the price of what is held."""
        held = statistics.fmean(x["held"] for x in windows) / (1 << 20)
        return self.cpu(run, windows) / self.unit + PRICE * held

    def last(self, run):
        """The last windows of a learner: as many as the fixed policies were looked at, 16 at least."""
        return run["windows"][-max(16, len(steady(self.fixed["default"]["windows"]))):]

    def learned(self, run):
        """With the instructions of the policy that plays, where whole policies do."""
        windows = self.last(run)
        chosen = windows[-1].get("policy")
        of = self.fixed[w.ELO[chosen]] if chosen is not None else {}
        return self.cost({"instructions": of.get("instructions")}, windows)


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
        best = one.costs[one.best]
        row = [name, one.best, percent(one.costs["default"] / best - 1)]
        row += [percent(one.learned(runs[k]) / best - 1) if k in runs else "" for k in LEARNERS]
        rows.append([*row, frozen_at(runs["ucb1"]) or "never" if runs else ""])
    return table(["workload", "best fixed", "default", "UCB1", "UCB1, progress", "Elo", "UCB1 froze at"], rows)


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
        for learner in LEARNERS:
            run = runs[learner]
            half = run["windows"][len(run["windows"]) // 2]["window"]
            after = [d for d in run["decisions"] if d["window"] > half]
            noticed = next((d["window"] - half for d in after if d["decision"] in (5, 6, 2)), None)
            regret = second.learned(run) / second.costs[second.best] - 1
            rows.append([name, learner, noticed if noticed is not None else "" if learner == "elo" else "never", percent(regret)])
    return table(["work", "learner", "noticed after windows", "regret at the end"], rows)


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
                total += one.cost({}, [x]) - one.costs[one.best]
                curve.append(total)
            axis.plot(curve, label=learner)
        axis.plot([i * (one.costs["default"] - one.costs[one.best]) for i in range(len(curve))], "k:", label="default")
        axis.set(title=name, xlabel="window")
    axes[0][0].set_ylabel("regret so far, windows")
    axes[0][0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})


def write(result, file):
    all_of = {name: Workload(fixed) for name, fixed in result["fixed"].items()}
    tables = [("Workloads", of_workloads(all_of, result)), ("Policies", of_policies(all_of))]
    if result["changes"]:
        tables.append(("The work changes", of_changes(all_of, result)))
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
        body += f"`scripts/bench learn`, {result['date']}, commit {result['commit']}, {where['cpu']}, {where['cpus']} CPUs, Linux {where['kernel']}; a page fault is {result['fault_ns']} ns.\n"
        file.write_text(head + found + body + "<!-- end learn -->" + tail)
