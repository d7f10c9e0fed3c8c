// SQLite on hakmem: examples/vms/sqlite.
#include "vm_test.h"

extern "C" {
#include "sqlite_heap.h"
}

#include <filesystem>
#include <thread>

using namespace test;

namespace
{

// A connection in a heap of its own.
struct Connection {
    hak_ctx *heap = sqlite_heap_new();
    sqlite3 *db = nullptr;
    int status = SQLITE_NOMEM;

    explicit Connection(const char *file = ":memory:", size_t limit = 0)
    {
        if (!heap) return;
        hak_limit(heap, 0, limit, nullptr, nullptr);
        sqlite_heap_use(heap);
        status = sqlite3_open(file, &db);
        if (status == SQLITE_OK) status = exec("PRAGMA temp_store = memory");
    }
    Connection(const Connection &) = delete;
    Connection &operator=(const Connection &) = delete;
    ~Connection()
    {
        close();
    }
    // The number that the last row begins with stays in `number`.
    int exec(const std::string &sql)
    {
        hak_ctx *before = sqlite_heap_use(heap);
        int result = sqlite3_exec(
            db, sql.c_str(),
            [](void *user, int, char **values, char **) {
                *static_cast<long *>(user) = values[0] ? atol(values[0]) : -1;
                return 0;
            },
            &number, nullptr);
        sqlite_heap_use(before);
        return result;
    }
    long ask(const std::string &sql)
    {
        REQUIRE(exec(sql) == SQLITE_OK);
        return number;
    }
    void close()
    {
        if (!heap) return;
        sqlite_heap_use(heap);
        CHECK(sqlite3_close(db) == SQLITE_OK);
        sqlite_heap_retire(heap);
        heap = nullptr;
    }
    void drop()
    {
        sqlite_heap_drop(heap);
        heap = nullptr;
    }
    long number = 0;
};

struct Library {
    explicit Library(hak_space *space, bool labels = true)
    {
        REQUIRE(sqlite_heap_start(space, labels) == SQLITE_OK);
    }
    ~Library()
    {
        sqlite_heap_end();
    }
};

std::string rows(long n, int width = 100)
{
    return "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < " + std::to_string(n) +
           ") INSERT INTO t SELECT i, printf('%.*c', " + std::to_string(width) + ", 'x') FROM n";
}

const char CREATE[] = "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)";
const char QUERY[] = "SELECT sum(a + length(b)) FROM (SELECT * FROM t ORDER BY b, -a)";

Ran work(size_t limit = 0)
{
    Connection c(":memory:", limit);
    if (c.status != SQLITE_OK) {
        CHECK(c.status == SQLITE_NOMEM);
        return Ran::None;
    }
    int status = c.exec(CREATE);
    if (status == SQLITE_OK) status = c.exec(rows(300));
    if (status == SQLITE_OK) status = c.exec("CREATE INDEX i ON t(b)");
    if (status == SQLITE_OK) status = c.exec(QUERY);
    if (status == SQLITE_OK) {
        CHECK(c.number == 300 * 301 / 2 + 300 * 100);
    } else {
        CHECK(status == SQLITE_NOMEM);
    }
    if (limit) CHECK(committed_of(c.heap) <= limit);
    require_sound(c.heap);
    require_sound(sqlite_heap_process());
    return status == SQLITE_OK ? Ran::Good : Ran::Refused;
}

} // namespace

TEST_CASE("sqlite: each connection has its heap, and closing it leaves nothing")
{
    TestSpace t;
    Library library(t.space);
    size_t before = stats_of(sqlite_heap_process()).live_blocks;
    Connection a, b;
    CHECK(a.exec(CREATE) == SQLITE_OK);
    size_t empty = stats_of(b.heap).live_bytes, few = stats_of(a.heap).live_bytes;
    CHECK(a.exec(rows(5000)) == SQLITE_OK);
    CHECK(stats_of(a.heap).live_bytes > few + 5000 * 100);
    CHECK(stats_of(b.heap).live_bytes == empty);
    CHECK(a.ask("SELECT count(*) FROM t") == 5000);
    require_sound(a.heap);
    hak_ctx *heap = a.heap;
    a.close();
    CHECK(hak_ctx_of(t.space, heap) == nullptr); // a context lies in its own memory
    CHECK(b.ask("SELECT 7") == 7);
    b.close();
    CHECK(stats_of(sqlite_heap_process()).live_blocks == before);
}

TEST_CASE("sqlite: labels tell what the memory of a connection is for")
{
    TestSpace t;
    Library library(t.space);
    Connection c;
    CHECK(c.exec(CREATE) == SQLITE_OK);
    size_t pages = label_named(c.heap, "page").live_bytes, schema = label_named(c.heap, "schema").live_blocks;
    CHECK(schema > 0);
    CHECK(label_named(c.heap, "connection").live_blocks > 0);
    CHECK(c.exec(rows(2000)) == SQLITE_OK);
    CHECK(label_named(c.heap, "page").live_bytes > pages + 200000);
    CHECK(label_named(c.heap, "schema").live_blocks == schema);
    CHECK(c.exec("CREATE TABLE u(a, b, c, d); CREATE INDEX v ON u(b)") == SQLITE_OK);
    CHECK(label_named(c.heap, "schema").live_blocks > schema);

    size_t statements = label_named(c.heap, "statement").live_blocks;
    sqlite_heap_use(c.heap);
    sqlite3_stmt *statement;
    CHECK(sqlite3_prepare_v2(c.db, QUERY, -1, &statement, nullptr) == SQLITE_OK);
    CHECK(label_named(c.heap, "statement").live_blocks > statements);
    CHECK(sqlite3_step(statement) == SQLITE_ROW);
    CHECK(label_named(c.heap, "sorter").live_bytes > 0);
    CHECK(sqlite3_finalize(statement) == SQLITE_OK);
    CHECK(label_named(c.heap, "sorter").live_blocks == 0);
    CHECK(label_named(c.heap, "statement").live_blocks == statements);
    hak_label_info other;
    CHECK(hak_label_stats(c.heap, 0, &other) == 0);
    CHECK(other.live_bytes < 1000);
    require_sound(c.heap);
}

TEST_CASE("sqlite: without labels all is in one row")
{
    TestSpace t;
    Library library(t.space, false);
    Connection c;
    CHECK(c.exec(CREATE) == SQLITE_OK);
    hak_label_info other;
    CHECK(hak_label_stats(c.heap, 0, &other) == 0);
    CHECK(other.live_blocks == stats_of(c.heap).live_blocks);
}

TEST_CASE("sqlite: a limit is SQLITE_NOMEM in one connection, which goes on")
{
    TestSpace t;
    Library library(t.space);
    const size_t limit = 1 * MiB;
    Connection c(":memory:", limit), other;
    REQUIRE(c.status == SQLITE_OK);
    CHECK(c.exec(CREATE) == SQLITE_OK);
    CHECK(c.exec(rows(100)) == SQLITE_OK);
    for (int round = 0; round < 3; round++) {
        CHECK(c.exec("INSERT INTO t SELECT NULL, printf('%.*c', 2000, 'y') FROM t a, t b") == SQLITE_NOMEM);
        CHECK(sqlite3_errcode(c.db) == SQLITE_NOMEM);
        CHECK(std::string(sqlite3_errmsg(c.db)) == "out of memory");
        CHECK(committed_of(c.heap) <= limit);
        CHECK(c.ask("SELECT count(*) FROM t") == 100); // rolled back
        require_sound(c.heap);
    }
    CHECK(stats_of(c.heap).peak_bytes > limit * 8 / 10);
    CHECK(other.exec(CREATE) == SQLITE_OK);
    CHECK(other.exec(rows(10000)) == SQLITE_OK);
    CHECK(c.exec("DELETE FROM t") == SQLITE_OK);
    CHECK(c.exec(rows(1000)) == SQLITE_OK);
    CHECK(c.ask("PRAGMA integrity_check; SELECT count(*) FROM t") == 1000);
}

TEST_CASE("sqlite: a database is dropped without being closed")
{
    TestSpace t;
    Library library(t.space);
    size_t before = stats_of(sqlite_heap_process()).live_blocks;
    Connection stays;
    CHECK(stays.exec(CREATE) == SQLITE_OK);
    for (int i = 0; i < 50; i++) {
        Connection c;
        CHECK(c.exec(CREATE) == SQLITE_OK);
        CHECK(c.exec(rows(500)) == SQLITE_OK);
        c.drop();
    }
    CHECK(stays.exec(rows(500)) == SQLITE_OK);
    stays.close();
    CHECK(stats_of(sqlite_heap_process()).live_blocks == before);
}

TEST_CASE("sqlite: with little memory statements run or there is none")
{
    sweep_limits(4 * KiB, 400 * KiB, [](hak_space *space, size_t limit) {
        Library library(space);
        return work(limit);
    });
}

TEST_CASE("sqlite: any page may be refused")
{
    refuse_each_page([](hak_space *space) {
        int status = sqlite_heap_start(space, true);
        if (status != SQLITE_OK) {
            CHECK(status == SQLITE_NOMEM);
            return Ran::None;
        }
        Ran ran = work();
        if (ran != Ran::Good) CHECK(work() == Ran::Good);
        sqlite_heap_end();
        return ran;
    });
}

TEST_CASE("sqlite: connections of several threads share a file, and the first goes before the last")
{
    std::string pattern = std::filesystem::temp_directory_path() / "hakmem-XXXXXX";
    REQUIRE(mkdtemp(pattern.data()));
    const std::filesystem::path folder = pattern;
    const std::string file = folder / "test.db";
    for (const char *mode : {"wal", "delete"}) {
        TestSpace t;
        Library library(t.space);
        size_t before = stats_of(sqlite_heap_process()).live_blocks;
        Connection first(file.c_str());
        CHECK(first.exec(std::string("PRAGMA synchronous = off; PRAGMA journal_mode = ") + mode) ==
              SQLITE_OK);
        CHECK(first.exec("DROP TABLE IF EXISTS t; CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)") ==
              SQLITE_OK);
        CHECK(label_named(sqlite_heap_process(), "file").live_blocks > 0);
        CHECK(label_named(first.heap, "file").live_blocks == 0);
        Connection second(file.c_str());
        sqlite3_busy_timeout(second.db, 60000);
        CHECK(second.ask("SELECT count(*) FROM t") == 0);
        first.close();

        const int threads = 4, each = 40;
        std::vector<std::thread> crew;
        std::atomic<int> good{0};
        for (int i = 0; i < threads; i++)
            crew.emplace_back([&, i] {
                Connection c(file.c_str());
                sqlite3_busy_timeout(c.db, 60000);
                c.exec("PRAGMA synchronous = off");
                for (int k = 0; k < each; k++)
                    good += c.exec("INSERT INTO t VALUES(" + std::to_string(i * each + k) + ", 'z')") ==
                            SQLITE_OK;
                c.close();
                sqlite_heap_use(nullptr);
            });
        for (std::thread &thread : crew)
            thread.join();
        CHECK(good == threads * each);
        CHECK(second.ask("SELECT count(*) FROM t") == threads * each);
        second.close();
        CHECK(stats_of(sqlite_heap_process()).live_blocks == before);
        require_sound(sqlite_heap_process());
    }
    std::filesystem::remove_all(folder);
}

TEST_CASE("sqlite: a text that SQLite gave outlives its connection")
{
    TestSpace t;
    Library library(t.space);
    Connection c;
    char *error = nullptr;
    sqlite_heap_use(c.heap);
    CHECK(sqlite3_exec(c.db, "SELECT 1 FROM nowhere", nullptr, nullptr, &error) == SQLITE_ERROR);
    c.close();
    CHECK(std::string(error) == "no such table: nowhere");
    sqlite3_free(error); // the heap goes with it
}
