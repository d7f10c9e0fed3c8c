-- Page rendering: templates compiled to lists of closures, run over nested data, escaped and joined.
local kit = dofile((arg[0]:match("^.*/") or "") .. "../kit.lua")
local random = kit.random(61)

local escapes = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }

local function escape(s)
    return (s:gsub('[&<>"]', escapes))
end

local function lookup(context, name)
    while context do
        local v = context.values[name]
        if v ~= nil then
            return v
        end
        context = context.parent
    end
    return ""
end

local compile

-- Returns the closures up to {{/name}} or the end, and where the text goes on.
local function compile_until(text, at, name)
    local steps = {}
    while true do
        local from, to, sigil, tag = text:find("{{([#/&]?)([%w_]+)}}", at)
        if not from then
            kit.check(not name, "section " .. tostring(name) .. " is closed")
            local rest = text:sub(at)
            steps[#steps + 1] = function(_, out)
                out[#out + 1] = rest
            end
            return steps, #text + 1
        end
        local before = text:sub(at, from - 1)
        if before ~= "" then
            steps[#steps + 1] = function(_, out)
                out[#out + 1] = before
            end
        end
        at = to + 1
        if sigil == "/" then
            kit.check(tag == name, "section " .. tag)
            return steps, at
        elseif sigil == "#" then
            local inner
            inner, at = compile_until(text, at, tag)
            steps[#steps + 1] = function(context, out)
                for _, values in ipairs(lookup(context, tag)) do
                    local scope = { values = values, parent = context }
                    for i = 1, #inner do
                        inner[i](scope, out)
                    end
                end
            end
        elseif sigil == "&" then
            steps[#steps + 1] = function(context, out)
                out[#out + 1] = tostring(lookup(context, tag))
            end
        else
            steps[#steps + 1] = function(context, out)
                out[#out + 1] = escape(tostring(lookup(context, tag)))
            end
        end
    end
end

function compile(text)
    local steps = compile_until(text, 1)
    return function(values)
        local out, context = {}, { values = values }
        for i = 1, #steps do
            steps[i](context, out)
        end
        return table.concat(out)
    end
end

local page = [[
<html><head><title>{{title}}</title></head><body>
{{#groups}}<h2>{{name}}</h2><ul>
{{#people}}<li class="{{class}}"><a href="{{&link}}">{{first}} {{last}}</a> ({{name}})
{{#marks}}<b>{{value}}</b> {{/marks}}</li>
{{/people}}</ul>{{/groups}}
</body></html>
]]

local function data(groups)
    local d = { title = "People & <marks>", groups = {} }
    for g = 1, groups do
        local group = { name = "group \"" .. g .. '"', people = {} }
        for p = 1, 25 do
            local person = {
                class = p % 2 == 0 and "even" or "odd",
                link = "/people/" .. g .. "/" .. p,
                first = "F" .. random(1000),
                last = "L<" .. random(1000) .. ">",
                marks = {},
            }
            for m = 1, 4 do
                person.marks[m] = { value = random(100) }
            end
            group.people[p] = person
        end
        d.groups[g] = group
    end
    return d
end

local function occurrences(s, what)
    return select(2, s:gsub(what, ""))
end

local served = {}
for round = 1, kit.size(400) do
    local render = compile(page)
    local html = render(data(8))
    kit.check(occurrences(html, "<li ") == 200 and occurrences(html, "</b>") == 800, "items of the page")
    kit.check(not html:find("L<", 1, true) and not html:find("{{", 1, true), "escaping")
    served[round % 24] = html
    kit.add(#html)
    kit.add_string(html:sub(-120))
end
kit.finish("template")
