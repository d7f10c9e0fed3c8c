"""Profiles of asyncio: each task that has a name is told apart."""

import collections
import unittest

from support import FREE_THREADED
from test_profile import ProfileCase, stacks


@unittest.skipIf(FREE_THREADED, "no lines in a free-threaded build")
class Tasks(ProfileCase):
    """Tasks of asyncio, of which each runs a step in turn."""

    PROGRAM = """
        import asyncio, sys
        keep = []
        class Own(asyncio.Task): pass
        async def wake():
            future = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_soon(future.set_result, None)
            await future
        async def step(n, pause):
            for i in range(20):
                keep.append(bytearray(n))
                await pause()
        async def named(n, name):
            asyncio.current_task().set_name(name)
            await step(n, wake)
        async def zero(): await asyncio.sleep(0)
        async def main():
            loop = asyncio.get_running_loop()
            await asyncio.gather(
                asyncio.create_task(step(100_000, zero), name="reader"),
                asyncio.create_task(step(300_000, wake), name="w\u00fcriter"),
                asyncio.create_task(named(20_000, "late")),
                asyncio.create_task(step(70_000, zero)),
                Own(step(10_000, wake), name="own"),
                asyncio.create_task(step(1_000, wake), name="x" * 200),
            )
        asyncio.run(main())
    """

    def tasks(self, report, value="live_bytes", least=1):
        found = collections.Counter()
        for names, frames, stack in stacks(report):
            if "step" in names:
                found[names[0]] += stack[value]
        return {k: v for k, v in found.items() if v >= least}

    def test_each_has_its_own(self):
        found = self.tasks(self.profile(self.PROGRAM, "--all"), least=10_000)
        truth = {"task reader": 2_000_000, "task w\u00fcriter": 6_000_000, "task late": 400_000, "task own": 200_000,
                 "task " + "x" * 58: 20_000, "<module>": 1_400_000}
        self.assertEqual(set(found), set(truth))
        for name, bytes in truth.items():
            self.assertTrue(bytes <= found[name] <= 1.2 * bytes + 4_000, (name, found[name]))

    def test_sampled(self):
        found = self.tasks(self.profile(self.PROGRAM, "--all", rate="4K"))
        self.assertTrue({"task reader", "task w\u00fcriter", "task late", "<module>"} <= set(found), found)

    def test_many_names(self):
        text = """
            import asyncio
            keep = []
            async def step(): keep.append(bytearray(10_000))
            async def main():
                for i in range(400):
                    await asyncio.create_task(step(), name=f"request {i}")
            asyncio.run(main())
        """
        found = self.tasks(self.profile(text, "--all"))
        self.assertEqual(sum(name.startswith("task request ") for name in found), 255)
        self.assertGreaterEqual(found["task (others)"], 145 * 10_000)

    def test_threads_with_loops_and_no_loop(self):
        text = """
            import asyncio, threading
            keep = []
            class Handle:
                def _run(self): keep.append(bytearray(1_000_000))
            async def step(n):
                for _ in range(50):
                    keep.append(bytearray(n))
                    await asyncio.sleep(0)
            async def main(i):
                await asyncio.gather(*[asyncio.create_task(step(1000 * i), name=f"{i}-{j}") for j in range(3)])
            Handle()._run()
            threads = [threading.Thread(target=lambda i=i: asyncio.run(main(i))) for i in range(1, 4)]
            for t in threads: t.start()
            for t in threads: t.join()
        """
        found = self.tasks(self.profile(text, "--all"), least=20_000)
        self.assertEqual(sum(name.startswith("task ") for name in found), 9)
        for i in range(1, 4):
            for j in range(3):
                self.assertTrue(50_000 * i <= found[f"task {i}-{j}"] <= 60_000 * i + 10_000, found)


if __name__ == "__main__":
    unittest.main()
