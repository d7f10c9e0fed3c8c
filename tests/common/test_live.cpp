// The socket of a process that runs: who gets a report, and for whom none is made.
#include "looker.h"

#include "catch.h"

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <semaphore.h>
#include <sys/resource.h>
#include <sys/stat.h>

extern "C" {
#include "common/live.h"
}

namespace
{

sem_t made, may_go_on;

int report(void *user, hkc_json *w)
{
    ++*static_cast<int *>(user);
    sem_post(&made);
    sem_wait(&may_go_on);
    hkc_json_object(w, nullptr);
    hkc_json_end(w);
    return 0;
}

// Twenty milliseconds may not be enough on a machine that has much to do. Between two attempts the thread
// takes who knocked, so that there is room for others.
bool pauses()
{
    for (int tries = 0; tries < 100; tries++) {
        if (hkc_live_pause()) return true;
        usleep(50000);
    }
    return false;
}

// Whether all other threads have come to a call that waits.
bool others_wait()
{
    for (int tries = 0; tries < 1000; tries++, usleep(1000)) {
        bool all = true;
        for (const auto &task : std::filesystem::directory_iterator("/proc/self/task")) {
            if (task.path().filename() == std::to_string(getpid())) continue;
            std::string stat;
            std::getline(std::ifstream(task.path() / "stat"), stat);
            all &= stat.find(") S ") != std::string::npos;
        }
        if (all) return true;
    }
    return false;
}

int connected(const std::string &path)
{
    const int fd = test::connected_to(path);
    REQUIRE(fd >= 0);
    return fd;
}

} // namespace

TEST_CASE("no report is made for who has gone already, and who comes when no descriptor is left waits")
{
    char folder[] = "/tmp/hakmem-live-XXXXXX", error[HKC_LIVE_ERROR] = "";
    REQUIRE(mkdtemp(folder) != nullptr);
    const std::string path = std::string(folder) + "/socket";
    int reports = 0;
    hkc_live_options options = {};
    options.place = path.c_str();
    options.report = report;
    options.user = &reports;
    sem_init(&made, 0, 0);
    sem_init(&may_go_on, 0, 10);
    const bool begun = hkc_live_begin(&options, error);
    INFO(error);
    REQUIRE(begun);

    // While the first report is made, others come and go; one says that it sends nothing, and waits.
    while (sem_trywait(&may_go_on) == 0) {
    }
    const int first = connected(path);
    sem_wait(&made);
    for (int i = 0; i < 3; i++)
        close(connected(path));
    const int half = connected(path), last = connected(path);
    shutdown(half, SHUT_WR);
    for (int i = 0; i < 10; i++)
        sem_post(&may_go_on);
    CHECK(test::received(first) == "{}\n");
    CHECK(test::received(half) == "{}\n");
    CHECK(test::received(last) == "{}\n");
    CHECK(reports == 3);

    struct rlimit limit;
    REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const struct rlimit none = {3, limit.rlim_max};
    const int late = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
    const bool waits = test::connects(late, path);
    const clock_t before = clock();
    usleep(400000);
    const clock_t used = clock() - before;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    REQUIRE(waits);
    CHECK(used < CLOCKS_PER_SEC / 10);
    sem_post(&may_go_on);
    CHECK(test::received(late) == "{}\n");

    REQUIRE(others_wait()); // and so the thread stays, or the next case would count one that goes
    hkc_live_end();
    CHECK(access(path.c_str(), F_OK) != 0);
    rmdir(folder);
}

TEST_CASE("a word is no place for a socket")
{
    char error[HKC_LIVE_ERROR] = "";
    hkc_live_options options = {};
    options.report = report;
    options.place = "maybe";
    CHECK_FALSE(hkc_live_begin(&options, error));
    CHECK(std::string(error) == "no socket at 'maybe': on or a path with a slash expected");

    const char *place = "";
    for (const char *word : {"", "maybe", "ON", "offside"})
        CHECK(std::string(hkc_live_setting(word, &place)) == "on, off or a path with a slash expected");
    CHECK(std::string(place).empty());
    CHECK((!hkc_live_setting("on", &place) && std::string(place) == "on"));
    CHECK((!hkc_live_setting("./maybe", &place) && std::string(place) == "./maybe"));
    CHECK((!hkc_live_setting("off", &place) && !place));
    CHECK(access("maybe", F_OK) == -1);
}

TEST_CASE("the thread ends for a pause, and who comes meanwhile is answered after it")
{
    char folder[] = "/tmp/hakmem-live-XXXXXX", error[HKC_LIVE_ERROR] = "";
    REQUIRE(mkdtemp(folder) != nullptr);
    const std::string path = std::string(folder) + "/socket";
    const auto threads = [] {
        struct stat tasks;
        return stat("/proc/self/task", &tasks) == 0 ? (int)tasks.st_nlink - 2 : 0;
    };
    int reports = 0;
    hkc_live_options options = {};
    options.place = path.c_str();
    options.report = report;
    options.user = &reports;
    sem_init(&made, 0, 0);
    sem_init(&may_go_on, 0, 0);
    CHECK_FALSE(hkc_live_pause());
    const int before = threads(); // with that of another case, which nothing wakes
    REQUIRE(hkc_live_begin(&options, error));
    for (int i = 0; i < 10; i++) {
        INFO(i);
        REQUIRE(pauses());
        REQUIRE(threads() == before);
        CHECK_FALSE(hkc_live_pause());
        const int meanwhile = connected(path);
        REQUIRE(hkc_live_resume() == nullptr);
        REQUIRE(threads() == before + 1);
        sem_wait(&made);
        CHECK_FALSE(hkc_live_pause()); // somebody is answered
        sem_post(&may_go_on);
        CHECK(test::received(meanwhile) == "{}\n");
    }
    CHECK(reports == 10);
    CHECK(hkc_live_resume() == nullptr);
    REQUIRE(pauses());
    hkc_live_end(); // in the pause
    CHECK(access(path.c_str(), F_OK) != 0);
    rmdir(folder);
}
