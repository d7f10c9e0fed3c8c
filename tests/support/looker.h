// Who looks at a process that runs, by its socket.
#pragma once

#include <cstring>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace test
{

// false = nobody listens there.
inline bool connects(int fd, const std::string &path)
{
    sockaddr_un at = {};
    at.sun_family = AF_UNIX;
    std::strcpy(at.sun_path, path.c_str());
    return connect(fd, reinterpret_cast<sockaddr *>(&at), sizeof at) == 0;
}

// -1 = nobody listens there.
inline int connected_to(const std::string &path)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connects(fd, path)) return fd;
    close(fd);
    return -1;
}

// All that comes, to the end.
inline std::string received(int fd)
{
    char bytes[4096];
    std::string all;
    for (ssize_t n; (n = recv(fd, bytes, sizeof bytes, 0)) > 0;)
        all.append(bytes, (size_t)n);
    close(fd);
    return all;
}

} // namespace test
