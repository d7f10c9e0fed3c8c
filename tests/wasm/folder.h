// A folder for compiled modules, which goes with all that is in it.
#pragma once

#include "wasm_test.h"

#include <dirent.h>
#include <string>
#include <sys/stat.h>

namespace test
{

struct Folder {
    char path[64] = "/tmp/hakmem-wasm-XXXXXX";
    Folder()
    {
        REQUIRE(mkdtemp(path) != nullptr);
    }
    Folder(const Folder &) = delete;
    Folder &operator=(const Folder &) = delete;
    ~Folder()
    {
        chmod(path, 0700);
        for (const std::string &name : names())
            remove(name.c_str());
        rmdir(path);
    }
    std::vector<std::string> names() const
    {
        std::vector<std::string> all;
        DIR *dir = opendir(path);
        while (const dirent *entry = dir ? readdir(dir) : nullptr)
            if (entry->d_name[0] != '.') all.push_back(std::string(path) + "/" + entry->d_name);
        if (dir) closedir(dir);
        return all;
    }
    std::string only() const
    {
        REQUIRE(names().size() == 1);
        return names()[0];
    }
};

} // namespace test
