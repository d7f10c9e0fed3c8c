// Files that are whole or not there.

extern "C" {
#include "common/file.h"
}

#include "catch.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

using names = std::set<std::string>;

// What happens before the next lock is taken. Returns an error, or 0 for what the system says.
static std::function<int()> before_lock;

// Goes before that of libc.
extern "C" int lock_or_fail(int fd, int how) __asm__("flock");
extern "C" int lock_or_fail(int fd, int how)
{
    const std::function<int()> before = std::exchange(before_lock, nullptr);
    const int error = before ? before() : 0;
    if (error == 0) return static_cast<int>(syscall(SYS_flock, fd, how));
    errno = error;
    return -1;
}

// A folder of its own, in which the test runs.
struct folder {
    char path[64] = "/tmp/hakmem-file-XXXXXX";
    int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    folder()
    {
        REQUIRE(mkdtemp(path));
        REQUIRE(chdir(path) == 0);
    }
    ~folder()
    {
        REQUIRE(fchdir(before) == 0);
        close(before);
        REQUIRE(system((std::string("rm -r ") + path).c_str()) == 0);
    }
    names files() const
    {
        names found;
        DIR *d = opendir(path);
        while (const dirent *e = readdir(d))
            if (e->d_name[0] != '.') found.insert(e->d_name);
        closedir(d);
        return found;
    }
};

static std::string content(const char *name)
{
    std::ifstream in(name);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

TEST_CASE("%p in a name is the number of a process, once")
{
    char out[HKC_FILE_NAME];
    CHECK(hkc_file_of_process("r.txt", 12, out) == 0);
    CHECK(out == std::string("r.txt"));
    CHECK(hkc_file_of_process("a/r-%p-%p.txt", 12, out) == 0);
    CHECK(out == std::string("a/r-12-%p.txt"));
    CHECK(hkc_file_of_process(std::string(HKC_FILE_NAME - 4, 'a').append("%p").c_str(), 12, out) == 0);
    CHECK(std::string(out).size() == HKC_FILE_NAME - 2);
    CHECK(hkc_file_of_process(std::string(HKC_FILE_NAME - 4, 'a').append("%p").c_str(), 1234, out) ==
          ENAMETOOLONG);
}

static mode_t mode_of(const char *name)
{
    struct stat is;
    return stat(name, &is) == 0 ? is.st_mode & 0777 : 0;
}

static void put(hkc_file *file, const char *text)
{
    REQUIRE(write(file->fd, text, strlen(text)) == (ssize_t)strlen(text));
}

// Writes it whole; or to the error.
static int store(const char *name, const char *text, mode_t mode = 0644)
{
    hkc_file file;
    int error = hkc_file_open(&file, name, mode);
    if (error) return error;
    put(&file, text);
    return hkc_file_close(&file, 0);
}

TEST_CASE("what was there stays until the new one is whole")
{
    folder here;
    for (const char *old : {"", "old"}) {
        hkc_file file;
        REQUIRE(hkc_file_open(&file, "r", 0640) == 0);
        put(&file, "new");
        CHECK(content("r") == old);
        CHECK(hkc_file_close(&file, EIO) == EIO);
        CHECK(content("r") == old);
        CHECK(here.files() == (*old ? names{"r"} : names{}));
        REQUIRE(store("r", "old", 0640) == 0);
        CHECK(content("r") == "old");
        CHECK(mode_of("r") == 0640);
        CHECK(here.files() == names{"r"});
    }
}

TEST_CASE("the mode of the old file goes before the umask")
{
    folder here;
    REQUIRE(store("r", "old") == 0);
    REQUIRE(chmod("r", 0666) == 0);
    const mode_t before = umask(077);
    REQUIRE(store("r", "new") == 0);
    REQUIRE(store("s", "new") == 0);
    umask(before);
    CHECK(content("r") == "new");
    CHECK(mode_of("r") == 0666);
    CHECK(mode_of("s") == 0600);
}

TEST_CASE("the new file has the mode of the old one")
{
    folder here;
    REQUIRE(store("r", "old") == 0);
    REQUIRE(chmod("r", 0600) == 0);
    REQUIRE(store("r", "new", 0666) == 0);
    CHECK(content("r") == "new");
    CHECK(mode_of("r") == 0600);
}

TEST_CASE("links are followed, relative ones from their folder")
{
    folder here;
    REQUIRE(mkdir("to", 0700) == 0);
    REQUIRE(symlink("next", "to/link") == 0);
    REQUIRE(symlink("r", "to/next") == 0);
    REQUIRE(store("to/link", "text") == 0);
    CHECK(content("to/r") == "text");
    CHECK(here.files() == names{"to"});
    char to[16] = "";
    CHECK(readlink("to/link", to, sizeof to) == 4);

    REQUIRE(symlink("loop", "loop") == 0);
    CHECK(store("loop", "text") == ELOOP);
    CHECK(hkc_file_try("loop") == ELOOP);
}

TEST_CASE("pipes, devices and streams are written to in place")
{
    folder here;
    REQUIRE(mkfifo("pipe", 0600) == 0);
    int reader = open("pipe", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    CHECK(hkc_file_in_place("pipe"));
    REQUIRE(store("pipe", "text") == 0);
    char text[8] = "";
    CHECK(read(reader, text, sizeof text) == 4);
    close(reader);
    CHECK(store("/dev/null", "text") == 0);

    int fd = open("out", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(write(fd, "before ", 7) == 7);
    for (const char *folder_of : {"/dev/fd/", "/proc/self/fd/"}) {
        const std::string name = folder_of + std::to_string(fd);
        CHECK(hkc_file_in_place(name.c_str()));
        REQUIRE(store(name.c_str(), "after ") == 0);
    }
    close(fd);
    CHECK(content("out") == "before after after ");
    CHECK(here.files() == names{"out", "pipe"});
}

TEST_CASE("what cannot be is told, and leaves nothing")
{
    folder here;
    const std::string far(HKC_FILE_NAME, 'x');
    REQUIRE(mkdir("d", 0700) == 0);
    CHECK(store("none/r", "text") == ENOENT);
    CHECK(hkc_file_try("none/r") == ENOENT);
    CHECK(store("d", "text") == EISDIR);
    CHECK(store(far.c_str(), "text") == ENAMETOOLONG);
    CHECK(store(far.substr(0, HKC_FILE_NAME - 1).c_str(), "text") == ENAMETOOLONG);
    CHECK(hkc_file_try("r") == 0);
    CHECK(here.files() == names{"d"});

    REQUIRE(store("r", "old") == 0);
    hkc_file file;
    REQUIRE(hkc_file_open(&file, "r", 0600) == 0);
    REQUIRE(unlink("r") == 0);
    REQUIRE(mkdir("r", 0700) == 0);
    CHECK(hkc_file_close(&file, 0) == EISDIR);
    CHECK(here.files() == names{"d", "r"});
}

TEST_CASE("what one that is gone was writing can be removed")
{
    folder here;
    REQUIRE(symlink("r", "link") == 0);
    std::ofstream("r.part-12") << "half";
    std::ofstream("r.part-13") << "another's";
    hkc_file_remove_part("link", 12);
    hkc_file_remove_part("none", 12);
    CHECK(here.files() == names{"link", "r.part-13"});
}

// What a thread of another container does whose number is the same: here it is this thread.
TEST_CASE("two that write with the same number at the same time write two files, and the last one wins")
{
    folder here;
    REQUIRE(store("r", "old") == 0);
    hkc_file one, two;
    REQUIRE(hkc_file_open(&one, "r", 0600) == 0);
    REQUIRE(write(one.fd, "first", 5) == 5);
    REQUIRE(hkc_file_open(&two, "r", 0600) == 0);
    CHECK(std::string(one.part) != two.part);
    REQUIRE(write(two.fd, "sec", 3) == 3);
    CHECK(hkc_file_close(&one, 0) == 0);
    CHECK(content("r") == "first");
    REQUIRE(write(two.fd, "ond", 3) == 3);
    CHECK(hkc_file_close(&two, 0) == 0);
    CHECK(content("r") == "second");
    CHECK(here.files() == names{"r"});
}

TEST_CASE("what one left that had this number before is in nobody's way")
{
    folder here;
    hkc_file file;
    REQUIRE(hkc_file_open(&file, "r", 0600) == 0);
    const std::string part = file.part;
    CHECK(hkc_file_close(&file, ECANCELED) == ECANCELED);
    std::ofstream(part) << "half";
    CHECK(store("r", "whole") == 0);
    CHECK(content("r") == "whole");
    CHECK(here.files() == names{"r"});
}

// What a signal handler does whose thread will not go on.
TEST_CASE("who abandons a file removes what it wrote, and nothing of others")
{
    folder here;
    hkc_file one = {}, two = {};
    hkc_file_abandon(&one);
    REQUIRE(hkc_file_open(&one, "r", 0600) == 0);
    const std::string part = one.part;

    // While it looks for a name, it has that of the first one.
    std::string seen;
    before_lock = [&] {
        seen = two.part;
        hkc_file_abandon(&two);
        return 0;
    };
    REQUIRE(hkc_file_open(&two, "r", 0600) == 0);
    CHECK(seen == part);
    CHECK(here.files() == names{part, two.part});
    hkc_file_abandon(&two);
    CHECK(here.files() == names{part});
    close(two.fd);
    close(two.lock);
    hkc_pipe_end(&two.quiet, 0);

    // The name was taken from it.
    REQUIRE(unlink(part.c_str()) == 0);
    std::ofstream(part) << "another's";
    hkc_file_abandon(&one);
    CHECK(content(part.c_str()) == "another's");
    close(one.fd);
    close(one.lock);
    hkc_pipe_end(&one.quiet, 0);
}

// Another user, or one that may not write the file: root may all.
struct somebody {
    const uid_t before = geteuid();
    somebody()
    {
        if (before == 0) REQUIRE(seteuid(65534) == 0);
    }
    ~somebody()
    {
        REQUIRE(seteuid(before) == 0);
    }
};

TEST_CASE("what another user writes with the same number is left alone")
{
    for (const mode_t mode : {0444, 0}) {
        folder here;
        REQUIRE(chmod(".", 0777) == 0);
        hkc_file one, two;
        REQUIRE(hkc_file_open(&one, "r", 0600) == 0);
        put(&one, "first");
        REQUIRE(chmod(one.part, mode) == 0);
        {
            const somebody other;
            REQUIRE(hkc_file_open(&two, "r", 0600) == 0);
        }
        CHECK(std::string(one.part) != two.part);
        CHECK(hkc_file_close(&one, 0) == 0);
        CHECK(here.files().count("r") == 1);
        CHECK(hkc_file_close(&two, ECANCELED) == ECANCELED);
        CHECK(here.files() == names{"r"});
    }
}

TEST_CASE("what another user left with the same number is in nobody's way")
{
    folder here;
    REQUIRE(chmod(".", 01777) == 0); // files are removed by their owners alone
    std::ofstream("r.part-" + std::to_string(syscall(SYS_gettid))) << "half";
    const somebody other;
    CHECK(store("r", "whole") == 0);
    CHECK(content("r") == "whole");
}

TEST_CASE("links that others put where all may write are not followed")
{
    folder here;
    if (geteuid() != 0) {
        SUCCEED("only root can be another");
        return;
    }
    REQUIRE(store("target", "old") == 0);
    REQUIRE(mkdir("all", 0700) == 0);
    REQUIRE(symlink("target", "r") == 0);
    REQUIRE(symlink("../target", "all/r") == 0);
    for (const char *name : {"r", "all/r"})
        REQUIRE(lchown(name, 65534, 65534) == 0);
    for (const char *name : {".", "all"})
        REQUIRE(chmod(name, 01777) == 0);
    for (const char *name : {"r", "all/r"}) {
        CHECK(store(name, "new") == EACCES);
        CHECK(hkc_file_try(name) == EACCES);
    }
    CHECK(content("target") == "old");
    REQUIRE(chmod("all", 0755) == 0);
    CHECK(store("all/r", "new") == 0); // not open to all
    CHECK(content("target") == "new");
    REQUIRE(chmod("all", 01777) == 0);
    const somebody other;
    REQUIRE(symlink("../own", "all/own") == 0);
    CHECK(store("all/own", "mine") == 0);
    CHECK(content("own") == "mine");
}

// Makes what a thread of another container makes that finds the part stale, too, and is faster.
static void remake(const std::string &part, int *fd)
{
    REQUIRE(unlink(part.c_str()) == 0);
    *fd = open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    REQUIRE(syscall(SYS_flock, *fd, LOCK_EX | LOCK_NB) == 0);
}

TEST_CASE("of two that find the same stale part one takes its name")
{
    folder here;
    hkc_file file;
    const std::string part = "r.part-" + std::to_string(syscall(SYS_gettid));
    int fd = -1;
    std::ofstream(part) << "half";
    before_lock = [&] { return remake(part, &fd), 0; };
    REQUIRE(hkc_file_open(&file, "r", 0600) == 0);
    CHECK(file.part == part + "-1");
    CHECK(here.files() == names{part, part + "-1"});
    put(&file, "whole");
    CHECK(hkc_file_close(&file, 0) == 0);
    CHECK(content("r") == "whole");

    close(fd);
    before_lock = [&] { return remake(part, &fd), 0; };
    hkc_file_remove_part("r", static_cast<pid_t>(syscall(SYS_gettid)));
    CHECK(here.files() == names{"r", part});
    close(fd);
}

TEST_CASE("where there are no locks no part is taken for stale")
{
    folder here;
    hkc_file file;
    const std::string part = "r.part-" + std::to_string(syscall(SYS_gettid));
    std::ofstream(part) << "written";
    before_lock = [] { return ENOLCK; };
    REQUIRE(hkc_file_open(&file, "r", 0600) == 0);
    CHECK(hkc_file_close(&file, 0) == 0);
    CHECK(here.files() == names{"r", part});
}

TEST_CASE("of parts with the same number those that are written stay")
{
    folder here;
    const int fd = open("r.part-12", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(syscall(SYS_flock, fd, LOCK_EX | LOCK_NB) == 0);
    std::ofstream("r.part-12-1") << "half";
    std::ofstream("r.part-12-7") << "half";
    std::ofstream("r.part-1") << "another's";
    hkc_file_remove_part("r", 12);
    CHECK(here.files() == names{"r.part-1", "r.part-12"});
    close(fd);
    hkc_file_remove_part("r", 12);
    CHECK(here.files() == names{"r.part-1"});
}

TEST_CASE("a file that may not grow is an error, and no signal ends the process")
{
    folder here;
    REQUIRE(store("r", "old") == 0);
    const pid_t child = fork();
    if (child == 0) {
        const rlimit small = {4, RLIM_INFINITY};
        setrlimit(RLIMIT_FSIZE, &small);
        signal(SIGXFSZ, SIG_DFL);
        hkc_file file;
        if (hkc_file_open(&file, "r", 0600) != 0) _exit(1);
        int error = 0;
        for (int i = 0; i < 3 && !error; i++)
            if (write(file.fd, "abcdef", 6) < 0) error = errno;
        sigset_t set;
        const bool told = error == EFBIG && hkc_file_close(&file, error) == EFBIG;
        pthread_sigmask(SIG_BLOCK, nullptr, &set);
        sigismember(&set, SIGXFSZ) == 0 && told ? _exit(0) : _exit(2);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(content("r") == "old");
    CHECK(here.files() == names{"r"});
}

TEST_CASE("the absolute name of a file that need not exist")
{
    folder here;
    char name[HKC_FILE_NAME];
    REQUIRE(hkc_file_absolute("r", name) == 0);
    CHECK(std::string(name) == std::string(here.path) + "/r");
    REQUIRE(hkc_file_absolute("/r", name) == 0);
    CHECK(std::string(name) == "/r");
    REQUIRE(mkdir("d", 0700) == 0);
    REQUIRE(hkc_file_absolute("d/../d/r", name) == 0);
    CHECK(std::string(name) == std::string(here.path) + "/d/r");
    CHECK(hkc_file_absolute("none/r", name) == ENOENT);
    CHECK(hkc_file_absolute("d/", name) == EISDIR);
    CHECK(hkc_file_absolute(("d/" + std::string(HKC_FILE_NAME, 'x')).c_str(), name) == ENAMETOOLONG);
}

TEST_CASE("a pipe that nobody reads is an error, and one that is read is waited for")
{
    folder here;
    REQUIRE(mkfifo("pipe", 0600) == 0);
    hkc_file file;
    CHECK(hkc_file_open(&file, "pipe", 0600) == ENXIO);
    const int reader = open("pipe", O_RDONLY | O_NONBLOCK);
    REQUIRE(hkc_file_open(&file, "pipe", 0600) == 0);
    CHECK((fcntl(file.fd, F_GETFL) & O_NONBLOCK) == 0);
    CHECK(hkc_file_close(&file, 0) == 0);
    close(reader);
}
