-- Conway's Life on an unbounded plane: cells are string keys, every generation is a new set.
local kit = dofile((arg[0]:match("^.*/") or "") .. "../kit.lua")
local random = kit.random(59)

local Board = {}
Board.__index = Board

local function new_board()
    return setmetatable({ cells = {}, count = 0 }, Board)
end

function Board:set(x, y)
    local key = x .. ":" .. y
    if not self.cells[key] then
        self.cells[key] = { x, y }
        self.count = self.count + 1
    end
end

function Board:next()
    local around, where = {}, {}
    for _, cell in pairs(self.cells) do
        for dx = -1, 1 do
            for dy = -1, 1 do
                if dx ~= 0 or dy ~= 0 then
                    local x, y = cell[1] + dx, cell[2] + dy
                    local key = x .. ":" .. y
                    around[key] = (around[key] or 0) + 1
                    where[key] = where[key] or { x, y }
                end
            end
        end
    end
    local board = new_board()
    for key, n in pairs(around) do
        if n == 3 or (n == 2 and self.cells[key]) then
            local at = where[key]
            board:set(at[1], at[2])
        end
    end
    return board
end

local function place(board, x, y, rows)
    for dy, row in ipairs(rows) do
        for dx = 1, #row do
            if row:sub(dx, dx) == "O" then
                board:set(x + dx, y + dy)
            end
        end
    end
end

-- A glider moves by one cell along the diagonal every four generations.
local board = new_board()
place(board, 0, 0, { ".O.", "..O", "OOO" })
for _ = 1, 40 do
    board = board:next()
end
local moved = new_board()
place(moved, 10, 10, { ".O.", "..O", "OOO" })
kit.check(board.count == 5, "cells of the glider")
for key in pairs(moved.cells) do
    kit.check(board.cells[key], "place of the glider")
end

board = new_board()
for _ = 1, 1600 do
    board:set(random(110), random(110))
end
for _ = 1, kit.size(260) do
    board = board:next()
    local sum = 0
    for _, cell in pairs(board.cells) do
        sum = sum + cell[1] * 3 + cell[2]
    end
    kit.add(board.count)
    kit.add(sum % 1000003)
end
kit.finish("life")
