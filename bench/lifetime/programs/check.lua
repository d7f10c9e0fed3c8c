-- A server for an editor: luacheck looks at the files that changed and keeps what it found. A trough comes after each
-- save of many files.
local lifetime = require "lifetime_lua"
package.preload.lfs = function()
    return {}
end
local luacheck = require "luacheck"
math.randomseed(tonumber(arg[1]))
local random = math.random

local sources, reports = {}, {}
for i = 2, #arg do
    local file = assert(io.open(arg[i]))
    sources[i - 1] = file:read "a"
    file:close()
end

for _ = 1, 6 do
    for _ = 1, 10 do
        local i = random(#sources)
        local edited = sources[i] .. ("\nlocal added%d = undefined%d\n"):format(random(1000), random(1000))
        reports[i] = luacheck.check_strings { edited }[1]
    end
    collectgarbage()
    lifetime.mark()
end
