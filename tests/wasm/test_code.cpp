// A folder of compiled modules: what is taken is what was put, and nobody else can have put it.
#include "folder.h"

extern "C" {
#include "sha256.h"
}

#include <atomic>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <thread>

using namespace test;

namespace
{

int put(const char *folder, const std::string &runtime, const std::string &module, const std::string &code,
        std::string *why = nullptr)
{
    char error[256] = "";
    const int result = hak_wasm_code_put(folder, runtime.c_str(), module.data(), module.size(), code.data(),
                                         code.size(), error, sizeof error);
    if (why) *why = error;
    return result;
}

// The code; "none", or what is wrong.
std::string get(const char *folder, const std::string &runtime, const std::string &module)
{
    char error[256] = "";
    hak_wasm_code code;
    const int found =
        hak_wasm_code_get(folder, runtime.c_str(), module.data(), module.size(), &code, error, sizeof error);
    if (found < 0) return error;
    if (found == 0) return "none";
    std::string text(static_cast<const char *>(code.bytes), code.size);
    hak_wasm_code_free(&code);
    CHECK(code.bytes == nullptr);
    return text;
}

std::string sha256(const std::string &text, size_t step)
{
    hkw_sha256 sha;
    hkw_sha256_begin(&sha);
    for (size_t at = 0; at < text.size(); at += step)
        hkw_sha256_add(&sha, text.data() + at, std::min(step, text.size() - at));
    uint8_t out[HKW_SHA256_BYTES];
    hkw_sha256_end(&sha, out);
    std::string hex;
    for (uint8_t byte : out) {
        char two[3];
        std::snprintf(two, sizeof two, "%02x", byte);
        hex += two;
    }
    return hex;
}

} // namespace

TEST_CASE("the hash is SHA-256", "[code]")
{
    const std::string million(1000000, 'a');
    for (size_t step : {1, 3, 64, 1000}) {
        // FIPS 180-4's examples.
        CHECK(sha256("", step) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        CHECK(sha256("abc", step) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", step) ==
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
        CHECK(sha256(million, step) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    }
}

TEST_CASE("code comes back for its module and its runtime, and no others", "[code]")
{
    Folder folder;
    CHECK(get(folder.path, "wamr", "module") == "none");
    REQUIRE(put(folder.path, "wamr", "module", "the code") == 0);
    CHECK(get(folder.path, "wamr", "module") == "the code");
    CHECK(get(folder.path, "wamr ", "module") == "none");
    CHECK(get(folder.path, "wamrm", "odule") == "none");
    CHECK(get(folder.path, "wamr", "modulE") == "none");
    CHECK(get(folder.path, "wamr", "") == "none");
    REQUIRE(put(folder.path, "wamr", "module", "other code") == 0);
    CHECK(get(folder.path, "wamr", "module") == "other code");
    REQUIRE(put(folder.path, "wasm2c", "module", std::string(100000, 'x')) == 0);
    CHECK(get(folder.path, "wasm2c", "module") == std::string(100000, 'x'));
    CHECK(folder.names().size() == 2);
    std::string why;
    CHECK(put(folder.path, "wamr", "module", "", &why) == -1);
    CHECK(why == std::string("hakmem: a compiled module cannot be put into \"") + folder.path +
                     "\": there is no code");
    CHECK(get(folder.path, "wamr", "module") == "other code");
}

TEST_CASE("what is damaged is as if it were not there", "[code]")
{
    Folder folder;
    const std::string code(5000, 'c');
    REQUIRE(put(folder.path, "r", "m", code) == 0);
    std::string whole;
    {
        std::ifstream in(folder.only(), std::ios::binary);
        whole.assign(std::istreambuf_iterator<char>(in), {});
    }
    const auto with = [&](const std::string &content) {
        std::ofstream(folder.only(), std::ios::binary | std::ios::trunc) << content;
        return get(folder.path, "r", "m");
    };
    CHECK(with(whole) == code);
    for (size_t at = 0; at < whole.size(); at += at < 48 ? 1 : 611) {
        std::string other = whole;
        other[at] ^= 1;
        if (with(other) != "none") FAIL("byte " << at << " is another one, and the code was taken");
    }
    for (size_t size : {size_t(0), size_t(7), size_t(40), size_t(41), whole.size() - 1})
        CHECK(with(whole.substr(0, size)) == "none");
    CHECK(with(whole + "c") == "none");
    // The file of another module in its place.
    CHECK(with(whole) == code);
    const std::string name = folder.only();
    REQUIRE(put(folder.path, "r", "another", code) == 0);
    for (const std::string &file : folder.names())
        if (file != name) REQUIRE(rename(file.c_str(), name.c_str()) == 0);
    CHECK(get(folder.path, "r", "m") == "none");
    REQUIRE(put(folder.path, "r", "m", code) == 0);
    CHECK(get(folder.path, "r", "m") == code);
}

TEST_CASE("what others may write to is not taken", "[code]")
{
    Folder folder;
    REQUIRE(put(folder.path, "r", "m", "code") == 0);
    const std::string file = folder.only();
    for (mode_t mode : {0620, 0602, 0666}) {
        chmod(file.c_str(), mode);
        CHECK(get(folder.path, "r", "m") == "none");
    }
    chmod(file.c_str(), 0644);
    CHECK(get(folder.path, "r", "m") == "code");
    // Neither a link nor a device in its place.
    const std::string other = file + ".other";
    REQUIRE(rename(file.c_str(), other.c_str()) == 0);
    REQUIRE(symlink(other.c_str(), file.c_str()) == 0);
    CHECK(get(folder.path, "r", "m") == "none");
    remove(file.c_str());
    REQUIRE(mkfifo(file.c_str(), 0600) == 0);
    CHECK(get(folder.path, "r", "m") == "none");
    remove(file.c_str());
    REQUIRE(rename(other.c_str(), file.c_str()) == 0);
    for (mode_t mode : {0720, 0702, 0777}) {
        chmod(folder.path, mode);
        const std::string why = std::string("hakmem: the folder of compiled modules \"") + folder.path +
                                "\": others may write to it";
        CHECK(get(folder.path, "r", "m") == why);
        std::string error;
        CHECK(put(folder.path, "r", "m2", "code", &error) == -1);
        CHECK(error == why);
    }
    chmod(folder.path, 0755);
    CHECK(get(folder.path, "r", "m") == "code");
    CHECK(get("/nowhere", "r", "m") ==
          "hakmem: the folder of compiled modules \"/nowhere\": No such file or directory");
    CHECK(get(file.c_str(), "r", "m").find("Not a directory") != std::string::npos);
    CHECK(hak_wasm_code_put("/nowhere", "r", "m", 1, "c", 1, nullptr, 0) == -1);
}

TEST_CASE("what a process of the same number left, or is writing, is in nobody's way", "[code]")
{
    Folder folder;
    REQUIRE(put(folder.path, "wasmtime 46", "module", "code") == 0);
    const std::string name = folder.only();
    for (unsigned i = 0; i < 300; i++)
        std::ofstream(name + "." + std::to_string(getpid()) + "." + std::to_string(i)) << "half";
    std::string why;
    CHECK(put(folder.path, "wasmtime 46", "module", "other code", &why) == 0);
    CHECK(why.empty());
    CHECK(get(folder.path, "wasmtime 46", "module") == "other code");
    CHECK(folder.names().size() == 301);
}

TEST_CASE("those that get meanwhile find one code or the other, whole", "[code]")
{
    Folder folder;
    const std::string codes[] = {std::string(30000, 'a'), std::string(50000, 'b')};
    REQUIRE(put(folder.path, "r", "m", codes[0]) == 0);
    std::atomic<bool> over{false};
    std::atomic<int> wrong{0};
    std::thread reader([&] {
        while (!over) {
            const std::string code = get(folder.path, "r", "m");
            wrong += code != codes[0] && code != codes[1];
        }
    });
    std::thread writer([&] {
        for (int i = 0; i < 100; i++)
            wrong += put(folder.path, "r", "m", codes[1]) != 0;
    });
    for (int i = 0; i < 100; i++)
        wrong += put(folder.path, "r", "m", codes[0]) != 0;
    writer.join();
    over = true;
    reader.join();
    CHECK(wrong == 0);
    CHECK(folder.names().size() == 1);
}
