-- A cache with least-recently-used order and random deletes: hash parts that fill, empty and rehash.
local kit = dofile((arg[0]:match("^.*/") or "") .. "../kit.lua")
local random = kit.random(37)

local Cache = {}
Cache.__index = Cache

local function new_cache(capacity)
    local head = {}
    head.prev, head.next = head, head
    return setmetatable({ map = {}, size = 0, capacity = capacity, head = head, evicted = 0 }, Cache)
end

local function unlink(node)
    node.prev.next = node.next
    node.next.prev = node.prev
end

function Cache:front(node)
    local head = self.head
    node.prev, node.next = head, head.next
    head.next.prev = node
    head.next = node
end

function Cache:get(key)
    local node = self.map[key]
    if node then
        unlink(node)
        self:front(node)
        return node.value
    end
end

function Cache:remove(key)
    local node = self.map[key]
    if node then
        unlink(node)
        self.map[key] = nil
        self.size = self.size - 1
    end
end

function Cache:put(key, value)
    local node = self.map[key]
    if node then
        node.value = value
        unlink(node)
        self:front(node)
        return
    end
    if self.size == self.capacity then
        self.evicted = self.evicted + 1
        self:remove(self.head.prev.key)
    end
    node = { key = key, value = value }
    self.map[key] = node
    self:front(node)
    self.size = self.size + 1
end

local capacity, keys = 12000, 40000
local cache = new_cache(capacity)
local hits, misses = 0, 0

for i = 1, kit.size(260000) do
    -- The product of two draws prefers small keys.
    local n = math.floor(random(keys) * random(keys) / keys) + 1
    local key = "/page/" .. n
    local value = cache:get(key)
    if value then
        hits = hits + 1
        kit.check(value.n == n, "value of " .. key)
    else
        misses = misses + 1
        cache:put(key, { n = n, body = "<p>" .. i .. "</p>" })
    end
    if i % 5 == 0 then
        cache:remove("/page/" .. random(keys))
    end
end

local listed, node = 0, cache.head.next
while node ~= cache.head do
    listed = listed + 1
    kit.check(cache.map[node.key] == node, "node of " .. node.key)
    node = node.next
end
local mapped = 0
for _ in pairs(cache.map) do
    mapped = mapped + 1
end
kit.check(listed == cache.size and mapped == listed and listed <= capacity, "size of the cache")
kit.add(hits)
kit.add(misses)
kit.add(cache.evicted)
kit.add(listed)
kit.finish("lru")
