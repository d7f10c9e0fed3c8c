/* The command line: that of the interpreter, and --hak- options, which the program does not get to see. */
#include "launcher.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HK_LUA_LUAJIT
#define FLAGS "ivE"
#define FLAGS_WITH_TAIL "E" /* what follows is not looked at */
#define WITH_TEXT "elj"     /* -e chunk or -echunk */
#define OPTIONS "-e -l -b -j -O -i -v -E -- -"
#else
#define FLAGS "ivEW"
#define FLAGS_WITH_TAIL ""
#define WITH_TEXT "el"
#define OPTIONS "-e -l -i -v -E -W -- -"
#endif
#define HAK_OPTIONS "--hak-report[=file] --hak-limit=size --hak-labels=on|off"

static bool fail(char *message, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

static bool fail(char *message, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(message, size, format, args);
    va_end(args);
    return false;
}

/* Bytes with an optional K, M or G. */
static bool parse_size(const char *text, size_t *size)
{
    if (*text < '0' || *text > '9') return false;
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    unsigned shift = 0;
    if (*end != '\0') {
        switch (*end++) {
        case 'K':
            shift = 10;
            break;
        case 'M':
            shift = 20;
            break;
        case 'G':
            shift = 30;
            break;
        default:
            return false;
        }
    }
    if (errno != 0 || *end != '\0' || n > (unsigned long long)PTRDIFF_MAX >> shift) return false;
    *size = (size_t)n << shift;
    return true;
}

/* The text behind `name=`; NULL when arg is another option. */
static const char *value_of(const char *arg, const char *name)
{
    size_t n = strlen(name);
    return strncmp(arg, name, n) == 0 && arg[n] == '=' ? arg + n + 1 : NULL;
}

static bool parse_hak(hk_options *o, const char *arg, char *message, size_t size)
{
    const char *value;
    if (strcmp(arg, "--hak-report") == 0) {
        o->report = true;
        o->report_file = NULL;
    } else if ((value = value_of(arg, "--hak-report")) != NULL) {
        if (*value == '\0') return fail(message, size, "%s: the name of a file expected", arg);
        o->report = true;
        o->report_file = value;
    } else if ((value = value_of(arg, "--hak-limit")) != NULL) {
        if (!parse_size(value, &o->limit))
            return fail(message, size, "%s: bytes expected, such as 65536, 512K, 64M or 2G; 0 = no limit",
                        arg);
    } else if ((value = value_of(arg, "--hak-labels")) != NULL) {
        o->labels = strcmp(value, "on") == 0;
        if (!o->labels && strcmp(value, "off") != 0)
            return fail(message, size, "%s: on or off expected", arg);
    } else {
        return fail(message, size, "unrecognized option '%s'; there are %s", arg, HAK_OPTIONS);
    }
    return true;
}

static void set_flag(hk_options *o, char flag)
{
    if (flag == 'i') o->interactive = o->version = true;
    else if (flag == 'v') o->version = true;
    else if (flag == 'E') o->ignore_env = true;
    else o->actions[o->action_count++] = (hk_action){flag, ""};
}

static bool is_argument(const char *text)
{
#ifdef HK_LUA_LUAJIT
    return text != NULL;
#else
    return text != NULL && *text != '-';
#endif
}

/* One option; *i is its index in args, and that of its last word afterwards. */
static bool parse_option(hk_options *o, char **args, int *i, char *message, size_t size)
{
    const char *arg = args[*i], *text = arg + 2;
    if (strchr(FLAGS, arg[1]) != NULL && (*text == '\0' || strchr(FLAGS_WITH_TAIL, arg[1]) != NULL)) {
        set_flag(o, arg[1]);
    } else if (strchr(WITH_TEXT, arg[1]) != NULL) {
        if (*text == '\0') {
            text = args[*i + 1];
            if (!is_argument(text)) return fail(message, size, "'%s' needs an argument", arg);
            o->argv[o->argc++] = args[++*i];
        }
        if (arg[1] == 'e') o->has_chunk = true;
        o->actions[o->action_count++] = (hk_action){arg[1], text};
#ifdef HK_LUA_LUAJIT
    } else if (arg[1] == 'O') {
        o->actions[o->action_count++] = (hk_action){'O', text};
#endif
    } else {
        return fail(message, size, "unrecognized option '%s'; there are %s %s", arg, OPTIONS, HAK_OPTIONS);
    }
    return true;
}

bool hk_options_parse(hk_options *o, int argc, char **argv, char *message, size_t size)
{
    memset(o, 0, sizeof *o);
    o->labels = true;
    o->argv = calloc((size_t)argc + 2, sizeof *o->argv);
    o->actions = calloc((size_t)argc + 1, sizeof *o->actions);
    if (o->argv == NULL || o->actions == NULL) return fail(message, size, "out of memory");
    int i = 0;
    if (argc > 0) o->argv[o->argc++] = argv[i++];
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strncmp(argv[i], "--hak-", 6) == 0) {
            if (!parse_hak(o, argv[i], message, size)) return false;
            continue;
        }
        if (argv[i][1] == '\0') { /* the script is stdin */
            o->from_stdin = true;
            break;
        }
        o->argv[o->argc++] = argv[i];
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
#ifdef HK_LUA_LUAJIT
        if (argv[i][1] == 'b') { /* takes all the rest */
            o->bytecode = o->argc - 1;
            i++;
            break;
        }
#endif
        if (!parse_option(o, argv, &i, message, size)) return false;
    }
    o->script = o->argc;
    while (i < argc)
        o->argv[o->argc++] = argv[i++];
    return true;
}
