/* The command line: that of the interpreter, and --hak- options, which the program does not get to see. */
#include "launcher.h"

#include "common/format.h"

#include "common/live.h"
#include "common/otel.h"
#include "common/policy.h"
#include "common/size.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HKL_LUAJIT
#define FLAGS "ivE"
#define FLAGS_WITH_TAIL "E" /* what follows is not looked at */
#define WITH_TEXT "elj"     /* -e chunk or -echunk */
#define USAGE "[options]... [script [args]...]."
#elif LUA_VERSION_NUM == 501
#define FLAGS "iv"
#define FLAGS_WITH_TAIL ""
#define WITH_TEXT "el"
#define USAGE "[options] [script [args]]."
#elif LUA_VERSION_NUM == 502
#define FLAGS "ivE"
#define FLAGS_WITH_TAIL "E"
#define WITH_TEXT "el"
#define USAGE "[options] [script [args]]"
#elif LUA_VERSION_NUM == 503
#define FLAGS "ivE"
#define FLAGS_WITH_TAIL ""
#define WITH_TEXT "el"
#define USAGE "[options] [script [args]]"
#else
#define FLAGS "ivEW"
#define FLAGS_WITH_TAIL ""
#define WITH_TEXT "el"
#define USAGE "[options] [script [args]]"
#endif
#define HAK_OPTIONS                                                                                          \
    "--hak-report[=file] --hak-limit=size --hak-labels=on|off --hak-profile=file[,rate] "                    \
    "--hak-profile-window=time|off --hak-probes=on|off|rate "                                                \
    "--hak-live=on|off|socket --hak-mode=name --hak-policy=file --hak-learn=file --hak-memory=word|size "    \
    "--hak-price=number --hak-reserve=size --hak-shared"

void hkl_print_usage(const hkl_options *o)
{
    bool incomplete = o->broken[1] != '\0' && o->broken[2] == '\0' && strchr(WITH_TEXT, o->broken[1]);
    fprintf(stderr, incomplete ? "%s: '%s' needs argument\n" : "%s: unrecognized option '%s'\n", hkl_program,
            o->broken);
    fprintf(stderr, "usage: %s " USAGE "\nThere are\n", hkl_program);
    fputs("  -e chunk               run this text\n"
#if LUA_VERSION_NUM >= 504
          "  -l [global=]module     require the module, into a global variable\n"
#elif LUA_VERSION_NUM >= 502
          "  -l module              require the module, into a global variable\n"
#else
          "  -l module              require the module\n"
#endif
#ifdef HKL_LUAJIT
          "  -b ...                 list or save bytecode\n"
          "  -j command[=options]   control the JIT compiler, or start a module jit.*\n"
          "  -O[options]            optimizations of the JIT compiler\n"
#endif
          "  -i                     interactive mode, behind the script\n"
          "  -v                     the version\n"
#if LUA_VERSION_NUM >= 502 || defined(HKL_LUAJIT)
          "  -E                     without environment variables\n"
#endif
#if LUA_VERSION_NUM >= 504
          "  -W                     warnings on\n"
#endif
          "  --                     the end of the options\n"
          "  -                      the end of the options; the script is on stdin\n"
          "  --hak-report[=file]    at exit, a report of memory, on stderr or in the file\n"
          "  --hak-limit=size       most committed bytes: 1000, 64K, 512M, 1.5G; 0 = no limit\n"
          "  --hak-labels=on|off    count memory by part of the interpreter (on)\n"
          "  --hak-profile=file[,rate]  at exit, memory by line and stack, as JSON; rate: bytes to a\n"
          "                         sample (512K), lines, or exact\n"
          "  --hak-profile-window=time|off  a window of the profile each 60s, 5m or 1h (60s)\n"
          "  --hak-probes=on|off|rate  a profile without a file, whose samples go to tracers by the\n"
          "                         probes otel_memory:alloc and free; rate: bytes to a sample (512K)\n"
          "  --hak-live=on|off|socket  hakmem attach shows the program while it runs; socket: a path\n"
          "                         with a slash, %p in it is the process's number\n"
          "  --hak-mode=name        memory against speed: balanced, fast, lean, minimal,\n"
          "                         learning, research\n"
          "  --hak-policy=file      numbers and hints of a policy\n"
          "  --hak-learn=file       begin with the policy in the file, learn, write it at exit\n"
          "  --hak-memory=word|size  what memory is worth: cheap, normal, dear; or a size for speed\n"
          "  --hak-price=number     what a MiB is worth, in millionths of the CPU time: 1 to 1000000\n"
          "  --hak-reserve=size     addresses reserved at the start, 4M to 1T (none)\n"
          "  --hak-shared           states of other threads may use this heap, too\n",
          stderr);
}

static bool fail(char *message, size_t size, const char *format, ...) HKC_FORMAT(3, 4);

static bool fail(char *message, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(message, size, format, args);
    va_end(args);
    return false;
}

/* The text behind `name=`; NULL when arg is another option. */
static const char *value_of(const char *arg, const char *name)
{
    size_t n = strlen(name);
    return strncmp(arg, name, n) == 0 && arg[n] == '=' ? arg + n + 1 : NULL;
}

static bool check_rate(const char *option, const char *rate, size_t mean, char *message, size_t size)
{
    const size_t least = (size_t)1 << 10, most = (size_t)1 << 40;
    return (mean >= least && mean <= most) ||
           fail(message, size, "%s: the rate '%.80s' is not from 1K to 1T", option, rate);
}

/* file[,rate]; the rate is what follows the last comma. */
static bool parse_profile(hkl_options *o, const char *value, char *message, size_t size)
{
    const char *comma = strrchr(value, ',');
    const char *rate = comma ? comma + 1 : NULL;
    o->profile_mode = HAK_LUA_PROFILE_SAMPLED;
    o->profile_mean = 0;
    if (rate && strcmp(rate, "exact") == 0) {
        o->profile_mode = HAK_LUA_PROFILE_EXACT;
    } else if (rate && strcmp(rate, "lines") == 0) {
        o->profile_mode = HAK_LUA_PROFILE_LINES;
    } else if (rate) {
        const char *wrong = hkc_size_parse(rate, &o->profile_mean);
        if (wrong)
            return fail(message, size, "--hak-profile: the rate '%.80s' %s; or lines, or exact", rate, wrong);
        if (!check_rate("--hak-profile", rate, o->profile_mean, message, size)) return false;
    }
    free(o->profile_file);
    const size_t length = comma ? (size_t)(comma - value) : strlen(value);
    o->profile_file = calloc(length + 1, 1);
    if (o->profile_file) memcpy(o->profile_file, value, length);
    if (!o->profile_file) return fail(message, size, "out of memory");
    if (o->profile_file[0] == '\0') return fail(message, size, "--hak-profile: the name of a file expected");
    return true;
}

/* A rate, for a profile without a file; that of a file has its own. */
static bool parse_probes(hkl_options *o, const char *value, char *message, size_t size)
{
    const bool off = strcmp(value, "off") == 0, has_rate = !off && strcmp(value, "on") != 0;
    o->probes = !off;
    o->probes_mean = 0;
    const char *wrong = has_rate ? hkc_size_parse(value, &o->probes_mean) : NULL;
    if (wrong) return fail(message, size, "--hak-probes: '%.80s' %s; or on or off", value, wrong);
    if (has_rate && !check_rate("--hak-probes", value, o->probes_mean, message, size)) return false;
    if (o->probes && !hkc_otel_there())
        return fail(message, size, "--hak-probes: there are no probes on this system");
    return true;
}

static bool parse_policy(hkl_options *o, const char *arg, const char *value, char *message, size_t size)
{
    char why[400];
    if (value_of(arg, "--hak-mode")) {
        int mode = hkc_mode_parse(value, why, sizeof why);
        if (mode < 0) return fail(message, size, "--hak-mode: %s", why);
        o->mode = (hak_mode)mode;
        o->mode_named = mode != HAK_MODE_LEARNING && mode != HAK_MODE_RESEARCH;
        return true;
    }
    if (*value == '\0') return fail(message, size, "%s: the name of a file expected", arg);
    hak_policy_unref(o->policy);
    o->policy = hkc_policy_load(value, why, sizeof why);
    return o->policy || fail(message, size, "--hak-policy: %s", why);
}

/* A value of an option that has none, for a message; NULL = there is no such option. */
static const char *example_of(const char *arg)
{
    static const char *const examples[][2] = {
        {"--hak-limit", "64M"},        {"--hak-labels", "off"},         {"--hak-profile", "profile.json"},
        {"--hak-live", "on"},          {"--hak-mode", "lean"},          {"--hak-policy", "policy.txt"},
        {"--hak-learn", "policy.txt"}, {"--hak-reserve", "1G"},         {"--hak-memory", "cheap"},
        {"--hak-price", "50"},         {"--hak-profile-window", "60s"}, {"--hak-probes", "on"},
    };
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        if (strcmp(arg, examples[i][0]) == 0) return examples[i][1];
    return NULL;
}

static bool parse_hak(hkl_options *o, const char *arg, char *message, size_t size)
{
    const char *value;
    if (strcmp(arg, "--hak-shared") == 0) {
        o->shared = true;
    } else if (strcmp(arg, "--hak-report") == 0) {
        o->report = true;
        o->report_file = NULL;
    } else if ((value = value_of(arg, "--hak-report"))) {
        if (*value == '\0') return fail(message, size, "%s: the name of a file expected", arg);
        o->report = true;
        o->report_file = value;
    } else if ((value = value_of(arg, "--hak-limit"))) {
        const char *wrong = hkc_size_parse(value, &o->limit);
        if (wrong) return fail(message, size, "--hak-limit: '%.80s' %s; 0 = no limit", value, wrong);
        o->limit_text = arg;
    } else if ((value = value_of(arg, "--hak-labels"))) {
        o->labels = strcmp(value, "on") == 0;
        if (!o->labels && strcmp(value, "off") != 0)
            return fail(message, size, "%s: on or off expected", arg);
    } else if ((value = value_of(arg, "--hak-profile"))) {
        return parse_profile(o, value, message, size);
    } else if ((value = value_of(arg, "--hak-profile-window"))) {
        const char *wrong = hkc_window_parse(value, &o->profile_window_ns);
        if (wrong) return fail(message, size, "--hak-profile-window: '%.80s' %s", value, wrong);
        o->has_profile_window = true;
    } else if ((value = value_of(arg, "--hak-probes"))) {
        return parse_probes(o, value, message, size);
    } else if ((value = value_of(arg, "--hak-live"))) {
        const char *wrong = hkc_live_setting(value, &o->live);
        if (wrong) return fail(message, size, "--hak-live: '%.80s': %s", value, wrong);
    } else if ((value = value_of(arg, "--hak-learn"))) {
        if (*value == '\0') return fail(message, size, "%s: the name of a file expected", arg);
        o->learn_file = value;
    } else if ((value = value_of(arg, "--hak-memory"))) {
        const char *wrong = hkc_memory_parse(value, &o->memory);
        if (wrong) return fail(message, size, "--hak-memory: '%.80s': %s", value, wrong);
    } else if ((value = value_of(arg, "--hak-price"))) {
        const char *wrong = hkc_price_parse(value, &o->memory);
        if (wrong) return fail(message, size, "--hak-price: '%.80s': %s", value, wrong);
    } else if ((value = value_of(arg, "--hak-reserve"))) {
        const char *wrong = hkc_reserve_parse(value, &o->reserve);
        if (wrong) return fail(message, size, "--hak-reserve: '%.80s' %s", value, wrong);
    } else if ((value = value_of(arg, "--hak-mode")) || (value = value_of(arg, "--hak-policy"))) {
        return parse_policy(o, arg, value, message, size);
    } else if ((value = example_of(arg))) {
        return fail(message, size, "'%s' needs its value in the same word, behind =: %s=%s", arg, arg, value);
    } else {
        return fail(message, size, "unrecognized option '%s'; there are %s", arg, HAK_OPTIONS);
    }
    return true;
}

static void set_flag(hkl_options *o, char flag)
{
    if (flag == 'i') o->interactive = o->version = true;
    else if (flag == 'v') o->version = true;
    else if (flag == 'E') o->ignore_env = true;
    else o->actions[o->action_count++] = (hkl_action){flag, ""};
}

static bool is_argument(const char *text)
{
    return text && (LUA_VERSION_NUM == 501 || *text != '-');
}

/* One option; *i is its index in args, and that of its last word afterwards. false = it is broken. */
static bool parse_option(hkl_options *o, char **args, int *i)
{
    const char *arg = args[*i], *text = arg + 2;
    if (strchr(FLAGS, arg[1]) && (*text == '\0' || strchr(FLAGS_WITH_TAIL, arg[1]))) {
        set_flag(o, arg[1]);
    } else if (strchr(WITH_TEXT, arg[1])) {
        if (*text == '\0') {
            text = args[*i + 1];
            if (!is_argument(text)) return false;
            o->argv[o->argc++] = args[++*i];
        }
        if (arg[1] == 'e') o->has_chunk = true;
        o->actions[o->action_count++] = (hkl_action){arg[1], text};
#ifdef HKL_LUAJIT
    } else if (arg[1] == 'O') {
        o->actions[o->action_count++] = (hkl_action){'O', text};
#endif
    } else {
        return false;
    }
    return true;
}

#ifdef HKL_LUAJIT
/* -b goes with -O alone. */
static bool goes_with_bytecode(const hkl_options *o)
{
    for (int i = 0; i < o->action_count; i++)
        if (o->actions[i].option != 'O') return false;
    return !o->version && !o->ignore_env;
}
#endif

/* The options, from args[1] on; the index of what follows them. */
static int parse_options(hkl_options *o, char **args, char *message, size_t size)
{
    int i = 1;
    for (; args[i] && args[i][0] == '-' && args[i][1] != '\0'; i++) {
        if (strncmp(args[i], "--hak-", 6) == 0) {
            if (!parse_hak(o, args[i], message, size)) return -1;
            continue;
        }
        o->argv[o->argc++] = args[i];
        if (strcmp(args[i], "--") == 0) return i + 1;
#ifdef HKL_LUAJIT
        if (args[i][1] == 'b' && goes_with_bytecode(o)) { /* takes all the rest */
            o->bytecode = o->argc - 1;
            return i + 1;
        }
#endif
        const char *arg = args[i];
        if (!parse_option(o, args, &i) && !o->broken) o->broken = arg;
    }
    return i;
}

/* What goes with a profile goes with one of a file or of tracers. */
static bool check_profile(const hkl_options *o, char *message, size_t size)
{
    if (o->shared && (o->profile_file || o->probes))
        return fail(message, size, "--hak-shared: there are no profiles of states that share a heap");
    if (o->has_profile_window && !o->profile_file && !o->probes)
        return fail(message, size, "--hak-profile-window: there is no --hak-profile");
    if (o->probes && o->profile_file && o->profile_mode == HAK_LUA_PROFILE_LINES)
        return fail(message, size,
                    "--hak-probes: a profile by line takes no samples: give --hak-profile a size");
    if (o->probes_mean != 0 && o->profile_file)
        return fail(message, size,
                    "--hak-probes: there is one profile, with the rate of --hak-profile: say on");
    return true;
}

bool hkl_options_parse(hkl_options *o, int argc, char **argv, char *message, size_t size)
{
    memset(o, 0, sizeof *o);
    o->labels = true;
    o->argv = calloc((size_t)argc + 2, sizeof *o->argv);
    o->actions = calloc((size_t)argc + 1, sizeof *o->actions);
    if (!o->argv || !o->actions) return fail(message, size, "out of memory");
    if (argc == 0) return true;
    o->argv[o->argc++] = argv[0];
    int i = parse_options(o, argv, message, size);
    if (i < 0) return false;
    if (!check_profile(o, message, size)) return false;
    if (!o->has_profile_window) o->profile_window_ns = HKC_WINDOW_NS;
    o->script = o->argc;
    while (i < argc)
        o->argv[o->argc++] = argv[i++];
    o->from_stdin = o->script < o->argc && strcmp(o->argv[o->script], "-") == 0 &&
                    strcmp(o->argv[o->script - 1], "--") != 0;
    return true;
}
