-- Programs that leak, and harmless ones whose memory has an odd shape in time: what is said of them?
--
--     haklua5.4 --hak-profile=/dev/null,lines --hak-profile-window=off verdicts.lua NAME
--
-- prints the kind, line and sentence of each verdict. Without a name it prints the names. A line that keeps what it
-- makes for ever says "keeps". Each program serves 4,800 requests, and begins a window after each 200.
-- luacheck: ignore 211 212 213 231 241 331 421 431 (what is kept is not read)
local hakmem = require "hakmem"
local TOTAL, WINDOW = 4800, 200
local leaks, clean = {}, {}
local now, at = 0, 0

local state = 7932
local function random(n)
  state = state * 16807 % 2147483647
  return state % n + 1
end
local function frandom()
  return random(1000000) / 1000000
end
local function size(n)
  return math.floor(n / 2) + random(n)
end

-- What each request makes beside that, and drops.
local function garbage()
  local a, d = {}, {}
  for i = 1, 20 + random(40) do a[i] = "k" .. i * 3 end
  for i, v in ipairs(a) do d[v] = i end
  return table.concat(a, ",")
end

local function finish()
  for _, v in ipairs(hakmem.profile.report().verdicts) do
    local line = 0
    for _, f in ipairs(v.stack.frames) do
      if f.line then line = f.line break end
    end
    print(v.kind, line, v.stack.label, v.evidence)
  end
  os.exit(0)
end

local function go()
  if now >= TOTAL then finish() end
  if now % WINDOW == 0 and now > 0 then hakmem.profile.mark("requests") end
  now = now + 1
  at = now / TOTAL
  garbage()
  return true
end

local requests = {}
local function handle(id)
  local body = ("x"):rep(size(800)) .. id -- keeps
  requests["req-" .. id] = { id = id, body = body } -- keeps
end
function leaks.registry() while go() do handle(now) end end

function leaks.not_weak()
  local meta = {}
  while go() do
    local obj = { name = now } -- keeps
    meta[obj] = { seen = now, note = "n" .. now .. ("z"):rep(size(200)) } -- keeps
  end
end

function leaks.rep_keys()
  local t = {}
  while go() do
    t[string.rep("k", 20 + now % 50) .. now .. ("v"):rep(size(200))] = true -- keeps
  end
end

function leaks.coroutines()
  local live = {}
  while go() do
    local co = coroutine.create(function(a) local buf = { a, a, a }; coroutine.yield(buf) end) -- keeps
    coroutine.resume(co, now) -- keeps
    live[#live + 1] = co -- keeps
  end
end

function leaks.coroutines_wrapped()
  local live = {}
  local function gen(n) -- keeps
    return coroutine.wrap(function() for i = 1, n do coroutine.yield(i) end end) -- keeps
  end
  while go() do
    local g = gen(5) -- keeps
    g() -- keeps
    live[#live + 1] = g -- keeps
  end
end

function leaks.upvalue_chain()
  local chain = function() return nil end
  while go() do
    local prev, payload = chain, { now, now, now, now } -- keeps
    chain = function() return payload, prev end -- keeps
  end
end

function leaks.package_loaded()
  while go() do
    if now % 8 == 0 then
      local src = "local M = {} function M.f(x) return x + " .. now .. " end function M.g() end return M" -- keeps
      local chunk = (loadstring or load)(src, "@plugin" .. now) -- keeps
      package.loaded["plugin" .. now] = chunk() -- keeps
      package.loaded["source" .. now] = chunk -- keeps
    end
  end
end

function leaks.metatable_each()
  local objs = {}
  local function new(x)
    return setmetatable({ x = x }, { __index = function() return x end, __len = function() return 1 end }) -- keeps
  end
  while go() do
    objs[#objs + 1] = new(now) -- keeps
  end
end

function leaks.listeners()
  local bus = {}
  local function on(f) bus[#bus + 1] = f end -- keeps
  while go() do
    local widget = { state = { now, now, now, now, now, now, now } } -- keeps
    on(function(e) widget.last = e end) -- keeps
    for i = math.max(1, #bus - 4), #bus do bus[i](now) end
  end
end

function leaks.files_open()
  local files = {}
  while go() do
    if now % 40 == 0 then
      files[#files + 1] = io.open("/dev/null") -- keeps
      files[#files + 1] = ("f"):rep(size(9000)) .. now -- keeps
    end
  end
end

function leaks.slow_consumer()
  local q, first, last = {}, 1, 0
  while go() do
    for _ = 1, 5 do
      last = last + 1
      q[last] = { job = now, blob = ("j"):rep(size(250)) .. last } -- keeps
    end
    for _ = 1, 4 do q[first] = nil; first = first + 1 end
  end
end

function leaks.string_grows()
  local page = ""
  while go() do
    if now % 4 == 0 then page = page .. ("w"):rep(size(800)) end -- keeps
  end
end

function leaks.history_numbers()
  local h = {}
  while go() do
    for i = 1, 20 do h[#h + 1] = now * 1.5 end -- keeps
  end
end

function leaks.linked_list()
  local head
  while go() do
    head = { next = head, v = now, a = 1, b = 2 } -- keeps
  end
end

function leaks.late_leak()
  local keep = {}
  while go() do
    local tmp = {}
    for i = 1, 20 do tmp[i] = ("t"):rep(50) .. i end
    if at > 0.5 then keep[#keep + 1] = ("l"):rep(size(900)) .. now end -- keeps
  end
end

function leaks.bursts()
  local keep = {}
  while go() do
    if now % 700 < 50 then keep[#keep + 1] = ("b"):rep(size(5000)) .. now end -- keeps
  end
end

function leaks.forgotten_eviction()
  local cache, order, first, last = {}, {}, 1, 0
  while go() do
    cache[now] = ("e"):rep(size(2500)) .. now -- keeps
    if frandom() > 0.1 then last = last + 1; order[last] = now end
    while last - first >= 300 do cache[order[first]] = nil; order[first] = nil; first = first + 1 end
  end
end

function leaks.per_user_lists()
  local users = {}
  for i = 1, 50 do users[i] = {} end
  while go() do
    local u = users[random(50)]
    u[#u + 1] = { now, "click" .. now .. ("u"):rep(size(200)) } -- keeps
  end
end

function leaks.split_words()
  local seen = {}
  while go() do
    local text = ("alpha%d beta%d gamma%d"):format(now, now * 3, now * 7)
    for w in text:gmatch("%w+") do seen[#seen + 1] = w .. w .. w .. w .. w .. w .. w end -- keeps
  end
end

function leaks.traceback_strings()
  local errors = {}
  local function bad(n) local t = nil; return t.x end
  while go() do
    local ok, e = xpcall(bad, debug.traceback, now) -- keeps
    errors[#errors + 1] = e .. now -- keeps
  end
end

function leaks.matrix_rows()
  local m = {}
  while go() do
    if now % 5 == 0 then
      local row = {} -- keeps
      for i = 1, 40 do row[i] = i * 0.5 end -- keeps
      m[#m + 1] = row -- keeps
    end
  end
end

function leaks.small_among_large()
  local cache = {}
  local keep = {}
  while go() do
    cache[random(200)] = ("c"):rep(size(4000)) .. now
    if now % 5 == 0 then keep[#keep + 1] = "s" .. now .. " of the requests that are written down" end -- keeps
  end
end

-- What follows keeps nothing for ever: memory of odd shape in time.

function clean.warmup_flat()
  local d = {}
  local warm = math.floor(TOTAL * 0.15)
  while go() do d[now < warm and now or random(warm)] = ("w"):rep(size(1500)) .. now end
end

function clean.fifo_half()
  local d, cap = {}, math.floor(TOTAL * 0.5)
  while go() do d[now] = ("f"):rep(size(700)) .. now; d[now - cap] = nil end
end

function clean.ring_half()
  local d, cap = {}, math.floor(TOTAL * 0.5)
  while go() do d[now % cap] = ("f"):rep(size(700)) .. now end
end

function clean.batches()
  local rows = {}
  while go() do
    if (at * 6) % 1 < 0.6 then rows[#rows + 1] = ("r"):rep(size(1500)) .. now
    else for _ = 1, 3 do rows[#rows] = nil end end
  end
end

function clean.sawtooth()
  local buf = {}
  while go() do
    buf[#buf + 1] = { n = now, s = ("s"):rep(size(500)) .. now }
    if #buf > TOTAL / 7 then buf = {} end
  end
end

function clean.ramp_ends()
  local d = {}
  while go() do if at < 0.7 and now % 2 == 0 then d[#d + 1] = ("q"):rep(size(1200)) .. now end end
end

function clean.day_night()
  local s = {}
  while go() do
    local want = math.floor(600 * (1 + math.sin(at * math.pi * 5)))
    while #s < want do s[#s + 1] = ("d"):rep(size(900)) .. now .. #s end
    while #s > want do s[#s] = nil end
  end
end

function clean.rebuild_index()
  local idx
  while go() do
    if now % 500 == 1 then
      local new = {}
      for i = 1, 2000 + random(100) do new["key" .. i] = { i, "v" .. i .. now } end
      idx = new
    end
  end
end

function clean.gc_seldom()
  collectgarbage("stop")
  local n = 0
  while go() do
    local t = { now, ("g"):rep(size(500)) .. now }
    if now % math.floor(TOTAL / 8) == 0 then collectgarbage("collect") end
  end
end

function clean.log_ring()
  local ring = {}
  while go() do ring[now % 1500] = os.date() .. " line " .. now .. ("m"):rep(size(300)) end
end

function clean.memo_finite()
  local memo = {}
  while go() do
    for _ = 1, 3 do
      local k = random(2500)
      if not memo[k] then memo[k] = ("m"):rep(size(700)) .. k end
    end
  end
end

function clean.pool_highmark()
  local free, used = {}, {}
  while go() do
    local g = (frandom() + frandom() + frandom() - 1.5) * 2
    local want = math.min(250, math.floor(math.abs(g) * 80))
    while #used < want do used[#used + 1] = table.remove(free) or { ("p"):rep(size(4000)) .. now .. #used } end
    while #used > want do free[#free + 1] = table.remove(used) end
  end
end

function clean.arenas()
  local a = {}
  while go() do
    for i = 1, 5 do a[#a + 1] = ("a"):rep(size(300)) .. now end
    if now % 333 == 0 then a = {} end
  end
end

function clean.sessions_ttl()
  local s, ttl = {}, math.floor(TOTAL * 0.3)
  while go() do
    s[now] = { t = now, cart = { now, now, now }, who = ("u"):rep(size(200)) .. now }
    if now % 50 == 0 then for k, v in pairs(s) do if v.t < now - ttl then s[k] = nil end end end
  end
end

function clean.weak_cache()
  local w = setmetatable({}, { __mode = "v" })
  while go() do
    w[now] = { ("w"):rep(size(900)) .. now }
  end
end

function clean.builder()
  local parts, n = {}, 0
  while go() do
    parts[#parts + 1] = ("b"):rep(size(700)) .. now; n = n + 700
    if n > 500000 then table.concat(parts); parts, n = {}, 0 end
  end
end

function clean.wandering_queue()
  local q, first, last = {}, 1, 0
  while go() do
    for _ = 1, random(7) - 1 do last = last + 1; q[last] = ("q"):rep(size(400)) .. last end
    for _ = 1, random(7) - 1 do if first <= last then q[first] = nil; first = first + 1 end end
  end
end

function clean.random_replacement()
  local keys, cache, cap = {}, {}, math.floor(TOTAL * 0.35)
  while go() do
    local at = #keys < cap and #keys + 1 or random(cap)
    if keys[at] then cache[keys[at]] = nil end
    keys[at] = now
    cache[now] = ("c"):rep(size(900)) .. now
  end
end

function clean.coroutine_pool()
  local idle = {}
  local function worker(f) while true do f(); f = coroutine.yield() end end
  while go() do
    local n, busy = random(30), {}
    for i = 1, n do
      local co = table.remove(idle) or coroutine.create(worker)
      coroutine.resume(co, function() return { now } end)
      busy[i] = co
    end
    for i = 1, n do idle[#idle + 1] = busy[i] end
  end
end

function clean.merges()
  local runs = {}
  while go() do
    if now % 20 == 0 then
      local r = {}
      for i = 1, 100 do r[random(3000)] = ("x"):rep(60) .. now .. i end
      runs[#runs + 1] = r
      if #runs > 8 then
        local m = {}
        for _, run in ipairs(runs) do for k, v in pairs(run) do m[k] = v end end
        runs = { m }
      end
    end
  end
end

function clean.tenants()
  local t = {}
  while go() do
    if now % 150 == 0 then
      local k = random(12)
      if t[k] then t[k] = nil else
        t[k] = {}
        for i = 1, 200 do t[k][i] = ("t"):rep(size(1500)) .. i .. now end
      end
    end
  end
end

function clean.trie_build()
  local root = {}
  while go() do
    if at < 0.4 and math.floor(now / 100) % 3 ~= 2 then
      local node = root
      for i = 1, 6 do local k = random(16); node[k] = node[k] or {}; node = node[k] end
    end
  end
end

function clean.config_reload()
  local conf
  while go() do
    if now % 111 == 0 then
      conf = {}
      for i = 1, 800 do conf["k" .. i] = { "v" .. i .. now, i, i } end
    end
  end
end

function clean.vocabulary()
  local words = {}
  while go() do
    for _ = 1, 4 do
      local w = math.floor(frandom() ^ 3 * 6000)
      if not words[w] then words[w] = ("v"):rep(size(120)) .. w end
    end
  end
end

if not arg[1] then
  for name in pairs(leaks) do print("leak", name) end
  for name in pairs(clean) do print("clean", name) end
else
  (leaks[arg[1]] or clean[arg[1]])()
end
