#define _GNU_SOURCE
#include "settings.h"

#include <argp.h>
#include <arpa/inet.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static unsigned number(const char *text, unsigned least, unsigned most, struct argp_state *state,
                       const char *what)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (end == text || *end || value < least || value > most) {
        argp_error(state, "%s must be a number from %u to %u", what, least, most);
    }
    return (unsigned)value;
}

static error_t option(int key, char *text, struct argp_state *state)
{
    settings *s = state->input;
    switch (key) {
    case 'a':
        s->address = text;
        return 0;
    case 'p':
        s->port = number(text, 0, 65535, state, "--port");
        return 0;
    case 's':
        s->stats = text;
        return 0;
    case 'n':
        s->connections = number(text, 1, 10000, state, "--connections");
        return 0;
    case 'o':
        s->connections_of_address = number(text, 1, 10000, state, "--per-address");
        return 0;
    case 'd':
        s->deadline_ms = number(text, 100, 600000, state, "--deadline");
        return 0;
    case 'r':
        s->limits.processors = number(text, 1, 1000, state, "--processors");
        return 0;
    case 'm':
        s->limits.linear_bytes = (size_t)number(text, 2, 4096, state, "--memory") << 20;
        return 0;
    case 'i':
        s->limits.instances = number(text, 1, 1000, state, "--instances");
        return 0;
    case 'c':
        s->limits.customers = number(text, 1, 10000, state, "--customers");
        return 0;
    case 'l':
        s->limit_ms = number(text, 1, 60000, state, "--time");
        return 0;
    case 't':
        s->tokens = text;
        return 0;
    case 'S':
        s->scripts = text;
        return 0;
    case 'C':
        s->code = text;
        return 0;
    case 'q':
        s->limits.quota.rate = number(text, 1, 100000, state, "--quota") * 1e-2;
        return 0;
    case 'b':
        s->limits.quota.most = number(text, 1, 3600000, state, "--burst") * 1e-3;
        return 0;
    case 'f':
        s->forwarded = true;
        return 0;
    case 'v':
        s->live = text ? text : "on";
        return 0;
    case ARGP_KEY_ARG:
        if (s->guest) argp_error(state, "more than one guest");
        s->guest = text;
        return 0;
    case ARGP_KEY_END:
        if (!s->tokens && s->scripts)
            argp_error(state, "--scripts needs --tokens: anybody could fill the disk");
        if (!s->tokens && s->limits.quota.rate > 0)
            argp_error(state, "--quota needs --tokens: anybody could take another name");
        if (!s->guest)
            argp_error(state, "the guest is missing: quickjs.wasm of the npm package quickjs-wasi");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"address", 'a', "ADDRESS", 0, "IPv4 address to listen on (127.0.0.1), or `unix:PATH'", 0},
    {"port", 'p', "PORT", 0, "port, 0 = any that is free (8080)", 0},
    {"stats", 's', "[ADDRESS:]PORT", 0, "where GET /stats and the page are (127.0.0.1:8081), or `none'", 0},
    {"connections", 'n', "N", 0, "connections at once, a thread each (200)", 0},
    {"per-address", 'o', "N", 0, "of these, from one address (half of them)", 0},
    {"deadline", 'd', "MS", 0, "time to send a request, and time to take its answer (10000)", 0},
    {"processors", 'r', "N", 0, "scripts that run at once (as many as the process may use)", 0},
    {"memory", 'm', "MIB", 0, "linear memory of a customer (16)", 0},
    {"instances", 'i', "N", 0, "instances of a customer at once (8)", 0},
    {"customers", 'c', "N", 0, "customers at most, then idle ones are retired (100)", 0},
    {"time", 'l', "MS", 0, "CPU time that a script has (200)", 0},
    {"tokens", 't', "FILE", 0, "lines `NAME TOKEN': requests must bring a token of their customer", 0},
    {"scripts", 'S', "FOLDER", 0, "where customers' scripts are stored, by name and version", 0},
    {"code", 'C', "FOLDER", 0, "where the compiled guest is kept for the next start", 0},
    {"quota", 'q', "PERCENT", 0, "of a processor that a customer has in the long run (no limit)", 0},
    {"burst", 'b', "MS", 0, "CPU time that a customer can save up under a quota (10000)", 0},
    {"forwarded", 'f', NULL, 0, "a proxy is before the server: addresses are those of X-Forwarded-For", 0},
    {"live", 'v', "SOCKET", OPTION_ARG_OPTIONAL,
     "`hakmem attach' and `hakmem top' may look: customers are profiled", 0},
    {0},
};

bool settings_address(const char *address, unsigned port, struct sockaddr_in *out)
{
    *out = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, address, &out->sin_addr) == 1) return true;
    fprintf(stderr, "wasm-server: '%s' is not an IPv4 address\n", address);
    return false;
}

/* [ADDRESS:]PORT */
bool settings_stats(const char *text, char address[INET_ADDRSTRLEN], struct sockaddr_in *out)
{
    const char *colon = strrchr(text, ':'), *digits = colon ? colon + 1 : text;
    const size_t length = colon ? (size_t)(colon - text) : 0;
    char *end;
    const unsigned long port = strtoul(digits, &end, 10);
    if (*digits < '0' || *digits > '9' || *end || port > 65535 || length >= INET_ADDRSTRLEN) {
        fprintf(stderr, "wasm-server: --stats must be a port, an address and a port, or none; it is '%s'\n",
                text);
        return false;
    }
    snprintf(address, INET_ADDRSTRLEN, "%.*s", colon ? (int)length : 9, colon ? text : "127.0.0.1");
    return settings_address(address, (unsigned)port, out);
}

static unsigned usable_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

void settings_read(settings *s, int argc, char **argv)
{
    *s = (settings){.address = "127.0.0.1",
                    .stats = "127.0.0.1:8081",
                    .port = 8080,
                    .connections = 200,
                    .deadline_ms = 10000,
                    .limit_ms = 200,
                    .limits = {100, 8, usable_processors(), 16 << 20, 1 << 20, {0, 10}}};
    const struct argp argp = {options,
                              option,
                              "QUICKJS.wasm",
                              "Runs scripts of customers, each in a QuickJS of its own, within limits.",
                              NULL,
                              NULL,
                              NULL};
    argp_parse(&argp, argc, argv, 0, NULL, s);
    if (s->connections_of_address == 0) s->connections_of_address = (s->connections + 1) / 2;
}
