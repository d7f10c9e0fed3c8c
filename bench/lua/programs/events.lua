-- Object-oriented simulation of a workshop: an event queue, machines, jobs, classes with inheritance.
local kit = dofile((arg[0]:match("^.*/") or "") .. "../kit.lua")
local random = kit.random(43)

local function class(parent)
    local c = setmetatable({}, { __index = parent })
    c.__index = c
    c.new = function(...)
        local o = setmetatable({}, c)
        o:init(...)
        return o
    end
    return c
end

local Queue = class()

function Queue:init()
    self.heap, self.count = {}, 0
end

function Queue:push(event)
    local heap, i = self.heap, self.count + 1
    self.count = i
    while i > 1 do
        local up = math.floor(i / 2)
        local above = heap[up]
        if above.time < event.time or (above.time == event.time and above.serial < event.serial) then
            break
        end
        heap[i] = above
        i = up
    end
    heap[i] = event
end

local function earlier(a, b)
    return a.time < b.time or (a.time == b.time and a.serial < b.serial)
end

function Queue:pop()
    local heap, n = self.heap, self.count
    local top, last = heap[1], heap[n]
    heap[n] = nil
    n = n - 1
    self.count = n
    if n > 0 then
        local i = 1
        while 2 * i <= n do
            local child = 2 * i
            if child < n and earlier(heap[child + 1], heap[child]) then
                child = child + 1
            end
            if not earlier(heap[child], last) then
                break
            end
            heap[i] = heap[child]
            i = child
        end
        heap[i] = last
    end
    return top
end

local Event = class()

function Event:init(sim, delay)
    sim.serial = sim.serial + 1
    self.sim, self.time, self.serial = sim, sim.now + delay, sim.serial
end

local Arrival, Finish, Inspect = class(Event), class(Event), class(Event)

function Finish:init(sim, delay, machine, job)
    Event.init(self, sim, delay)
    self.machine, self.job = machine, job
end

function Inspect:init(sim, delay, job)
    Event.init(self, sim, delay)
    self.job = job
end

local Machine = class()

function Machine:init(name, speed)
    self.name, self.speed, self.waiting, self.from, self.to = name, speed, {}, 1, 0
    self.busy, self.done = false, 0
end

function Machine:offer(sim, job)
    self.to = self.to + 1
    self.waiting[self.to] = job
    if not self.busy then
        self:start(sim)
    end
end

function Machine:start(sim)
    if self.from > self.to then
        self.busy = false
        return
    end
    local job = self.waiting[self.from]
    self.waiting[self.from] = nil
    self.from = self.from + 1
    self.busy = true
    sim.queue:push(Finish.new(sim, math.floor(job.work / self.speed) + 1, self, job))
end

local Job = class()

function Job:init(id, born)
    self.id, self.born, self.work, self.step, self.history = id, born, 20 + random(160), 1, {}
end

local Sim = class()

function Sim:init(machines, jobs)
    self.queue, self.now, self.serial = Queue.new(), 0, 0
    self.machines, self.jobs, self.born, self.finished, self.delay = {}, jobs, 0, 0, 0
    for i = 1, machines do
        self.machines[i] = Machine.new("machine " .. i, 1 + i % 3)
    end
end

function Sim:send(job)
    self.machines[random(#self.machines)]:offer(self, job)
end

function Arrival:run()
    local sim = self.sim
    sim.born = sim.born + 1
    sim:send(Job.new(sim.born, sim.now))
    if sim.born < sim.jobs then
        sim.queue:push(Arrival.new(sim, random(7)))
    end
end

function Finish:run()
    local job, sim, machine = self.job, self.sim, self.machine
    machine.done = machine.done + 1
    job.history[#job.history + 1] = { machine = machine, time = sim.now }
    sim.queue:push(Inspect.new(sim, 2, job))
    machine:start(sim)
end

function Inspect:run()
    local job, sim = self.job, self.sim
    job.step = job.step + 1
    if job.step <= 4 then
        sim:send(job)
    else
        sim.finished = sim.finished + 1
        sim.delay = sim.delay + sim.now - job.born
    end
end

function Sim:run()
    self.queue:push(Arrival.new(self, 0))
    while self.queue.count > 0 do
        local event = self.queue:pop()
        kit.check(event.time >= self.now, "time runs forward")
        self.now = event.time
        event:run()
    end
end

local sim = Sim.new(80, kit.size(36000, 10))
sim:run()
local done = 0
for _, machine in ipairs(sim.machines) do
    done = done + machine.done
    kit.add(machine.done)
end
kit.check(sim.finished == sim.jobs and done == 4 * sim.jobs, "finished jobs")
kit.add(sim.now)
kit.add(sim.delay)
kit.finish("events")
