-- A game: each frame moves some thousand things, makes particles that live for some frames, and loads a level now and
-- then. It never calls hakmem.tick(). arg[1]: frames.
local frames = tonumber(arg and arg[1]) or 3000
local things, particles = {}, {}
local function level(n)
    things = {}
    for i = 1, n do
        things[i] = { x = i % 97, y = i % 89, name = "thing" .. i, trail = { 0, 0, 0 } }
    end
end
for frame = 1, frames do
    if frame % 400 == 1 then
        level(20000 + frame % 7 * 9000)
    end
    for i = 1, #things, 7 do
        local t = things[i]
        t.x, t.y = t.y, t.x + 1
        t.trail = { t.x, t.y, frame }
    end
    for i = 1, 300 do
        particles[frame % 30 * 300 + i] = { x = i, y = frame, life = 30, colour = { i, i, i } }
    end
end
