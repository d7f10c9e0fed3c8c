// The specification's tests as spec.py writes them: run three times on each guest, with resets in between.
#pragma once

#include "catch.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace test
{

// The most arguments or results that a function has.
constexpr size_t SPEC_VALUES = 32;

struct SpecValue {
    std::string type;
    uint64_t bits = 0;
    bool null = false, nan = false;

    explicit SpecValue(const std::string &text) : type(text.substr(0, text.find(':')))
    {
        const std::string value = text.substr(text.find(':') + 1);
        null = value == "null";
        nan = value == "nan";
        if (!null && !nan) bits = std::stoull(value);
    }
    // Whether a result of these bits is this value.
    bool matches(uint64_t result) const
    {
        if (nan && type == "f32") return (result & 0x7fc00000) == 0x7fc00000;
        if (nan) return (result & 0x7ff8000000000000) == 0x7ff8000000000000;
        return result == bits;
    }
};

struct SpecCommand {
    std::string text, function;
    bool traps;
    std::vector<SpecValue> arguments, results;
};

struct SpecModule {
    std::string file;
    std::vector<SpecCommand> commands;
};

inline std::vector<SpecModule> read_spec()
{
    std::ifstream in(std::string(SPEC) + "modules.txt");
    REQUIRE(in.good());
    std::vector<SpecModule> modules;
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string kind, name;
        words >> kind >> name;
        if (kind == "module") {
            modules.push_back({name, {}});
            continue;
        }
        SpecCommand command{line, name, kind == "trap", {}, {}};
        bool results = false;
        for (std::string word; words >> word;) {
            if (word == "->") results = true;
            else (results ? command.results : command.arguments).emplace_back(word);
        }
        REQUIRE(std::max(command.arguments.size(), command.results.size()) <= SPEC_VALUES);
        modules.back().commands.push_back(command);
    }
    REQUIRE(!modules.empty());
    return modules;
}

struct SpecCounts {
    size_t restored = 0, refused = 0, commands = 0;
};

// Guest: made of a module's path; refused() says why it cannot be reset, "" = it can; run(command) checks
// one; reset() brings it back, by a new instance if need be.
template <typename Guest, typename Make>
SpecCounts run_spec(Make make)
{
    SpecCounts counts;
    for (const SpecModule &module : read_spec()) {
        INFO(module.file);
        std::unique_ptr<Guest> guest = make(std::string(SPEC) + module.file);
        if (!guest->refused().empty()) {
            counts.refused++;
            continue;
        }
        counts.restored++;
        for (int round = 0; round < 3; round++) {
            INFO("round " << round);
            for (const SpecCommand &command : module.commands) {
                INFO(command.text);
                guest->run(command);
                counts.commands++;
            }
            guest->reset();
        }
    }
    return counts;
}

} // namespace test
