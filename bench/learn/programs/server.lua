-- A server: requests that build a page from a table of rows, a cache that keeps the last ones, and a tick after each
-- batch. arg[1]: batches.
local ok, hakmem = pcall(require, "hakmem")
local batches = tonumber(arg and arg[1]) or 150
local cache = {}
local function request(n)
    local rows = {}
    for i = 1, 400 do
        rows[i] = { id = i, name = "name " .. i * n, tags = { "a" .. i, "b" .. n } }
    end
    local parts = {}
    for i, row in ipairs(rows) do
        parts[i] = ("<tr><td>%d<td>%s<td>%s"):format(row.id, row.name, table.concat(row.tags, ","))
    end
    return table.concat(parts, "\n")
end
for batch = 1, batches do
    for i = 1, 40 do
        cache[(batch * 40 + i) % 700] = request(batch * 40 + i)
    end
    if batch % 10 == 0 then
        cache = {}
        collectgarbage()
    end
    if ok then
        hakmem.tick()
    end
end
