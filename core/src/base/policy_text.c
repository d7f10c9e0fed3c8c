/* Policies as text. */
#include "base/policy.h"

#include <stdarg.h>
#include <stdio.h>

enum { VERSION = 1, TEXT_MOST = 1 << 20, VALUE = 24 };
static const char head[] = "hakmem-policy ";

/* ---- Parse ---------------------------------------------------------------------------------------- */

/* What is read, in pages of its own: the text with ends of strings where words end, and the hints. */
typedef struct parser {
    hak_policy_options o;
    hak_tuning tuning;
    hak_hint *hints;
    hak_undone undone[HAK_UNDONE_MOST];
    unsigned line;
    hak_policy_error *error;
} parser;

static bool fail(parser *p, const char *format, ...) HK_FORMAT(2, 3);
static bool fail(parser *p, const char *format, ...)
{
    va_list args;
    if (!p->error) return false;
    p->error->line = p->line;
    va_start(args, format);
    vsnprintf(p->error->text, sizeof p->error->text, format, args);
    va_end(args);
    return false;
}

/* Digits and a unit; or `none`. */
static bool parse_number(const char *text, size_t *out)
{
    size_t n = 0;
    if (strcmp(text, "none") == 0) return *out = HAK_NONE, true;
    if (*text < '0' || *text > '9') return false;
    for (; *text >= '0' && *text <= '9'; text++)
        if (__builtin_mul_overflow(n, (size_t)10, &n) || __builtin_add_overflow(n, (size_t)(*text - '0'), &n))
            return false;
    static const char units[] = "KMGT";
    const char *unit = *text ? strchr(units, *text) : NULL;
    if (*text && (!unit || text[1])) return false;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (n > SIZE_MAX >> shift) return false;
    *out = n << shift;
    return true;
}

/* The word at *text, and *text at the next one. */
static char *word(char **text)
{
    char *first = *text, *end = first + strcspn(first, " \t");
    *text = end + strspn(end, " \t");
    *end = '\0';
    return first;
}

static bool parse_hint(parser *p, char *rest)
{
    size_t room;
    const char *value = word(&rest), *what = word(&rest);
    bool site = strcmp(what, "site") == 0;
    if (!parse_number(value, &room) || room == 0 || room > HAK_HINT_ROOM_MOST)
        return fail(p, "room: '%.40s' is not from 1 to %d", value, HAK_HINT_ROOM_MOST);
    if (!site && strcmp(what, "label") != 0)
        return fail(p, "room: 'label' or 'site' expected, not '%.40s'", what);
    size_t most = site ? HAK_HINT_NAME_MOST : HAK_POLICY_NAME_MOST;
    if (!hk_name_good(rest, most))
        return fail(p, "%s: 1 to %zu bytes without control characters expected", what, most);
    for (size_t i = 0; i < p->o.hint_count; i++) {
        const char *other = site ? p->hints[i].site : p->hints[i].label;
        if (other && strcmp(other, rest) == 0)
            return fail(p, "room of the %s '%.60s': said twice", what, rest);
    }
    if (p->o.hint_count == HAK_HINTS_MOST) return fail(p, "more than %d hints", HAK_HINTS_MOST);
    p->hints[p->o.hint_count++] = (hak_hint){site ? NULL : rest, site ? rest : NULL, (unsigned)room};
    return true;
}

static bool parse_setting(parser *p, const char *key, const char *value)
{
    unsigned i = 1;
    while (i < HK_SETTING_WORDS && strcmp(hk_setting_name(i), key) != 0)
        i++;
    if (i == HK_SETTING_WORDS) return fail(p, "'%.40s' is unknown", key);
    if (hk_setting_get(&p->tuning, i)) return fail(p, "%s: said twice", key);
    size_t n;
    if (!parse_number(value, &n)) return fail(p, "%s: '%.40s' is no number", key, value);
    if (n == 0) return fail(p, "%s: 0 is no value; leave the line out", key);
    const char *wrong = hk_setting_wrong(i, n);
    if (wrong) return fail(p, "%s", wrong + strlen("tuning."));
    hk_setting_set(&p->tuning, i, n);
    return true;
}

/* memory: a word for a price, or a budget in bytes. */
static bool parse_memory(parser *p, const char *value)
{
    static const struct {
        char name[8];
        unsigned price;
    } words[] = {{"cheap", HAK_PRICE_CHEAP}, {"normal", HAK_PRICE_NORMAL}, {"dear", HAK_PRICE_DEAR}};
    size_t n;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(value, words[i].name) != 0) continue;
        if (p->o.price) return fail(p, "price: said twice");
        return p->o.price = words[i].price, true;
    }
    if (p->o.budget) return fail(p, "memory: said twice");
    if (!parse_number(value, &n) || n == 0)
        return fail(p, "memory: '%.40s' is not cheap, normal, dear or a size", value);
    const char *wrong = hk_budget_wrong(n);
    return wrong ? fail(p, "memory: '%.40s': %s", value, wrong + strlen("budget: "))
                 : (p->o.budget = n, true);
}

static bool parse_price(parser *p, const char *value)
{
    size_t n;
    if (p->o.price) return fail(p, "price: said twice");
    if (!parse_number(value, &n) || n == 0 || hk_price_wrong(n))
        return fail(p, "price: '%.40s' is not from 1 to %d", value, HAK_PRICE_MOST);
    p->o.price = (unsigned)n;
    return true;
}

/* The word that is expected, and the number behind it. */
static bool parse_word(char **rest, const char *expected, unsigned *out)
{
    size_t n;
    if (strcmp(word(rest), expected) != 0 || !parse_number(word(rest), &n) || n > UINT32_MAX) return false;
    *out = (unsigned)n;
    return true;
}

static bool parse_value(const char *number, const char *text, size_t *out)
{
    if (strcmp(number, "mode") != 0) return parse_number(text, out);
    int mode = hak_mode_by_name(text);
    *out = (size_t)mode;
    return mode >= 0;
}

/* undone NUMBER TO from FROM cost N without N windows N price N fault N */
static bool parse_undone(parser *p, char *rest)
{
    hak_undone u = {.number = hk_tried_name(word(&rest))};
    bool good = u.number && parse_value(u.number, word(&rest), &u.to) && strcmp(word(&rest), "from") == 0 &&
                parse_value(u.number, word(&rest), &u.from) && parse_word(&rest, "cost", &u.cost) &&
                parse_word(&rest, "without", &u.without) && parse_word(&rest, "windows", &u.windows) &&
                parse_word(&rest, "price", &u.price) && parse_word(&rest, "fault", &u.fault_ns);
    if (!good || *rest || hk_undone_wrong(&u))
        return fail(p, "undone: 'NUMBER TO from FROM cost N without N windows N price N fault N' expected");
    for (size_t i = 0; i < p->o.undone_count; i++)
        if (p->undone[i].number == u.number && p->undone[i].to == u.to && p->undone[i].from == u.from)
            return fail(p, "undone: this step was said already");
    if (p->o.undone_count == HAK_UNDONE_MOST) return fail(p, "more than %d undone trials", HAK_UNDONE_MOST);
    p->undone[p->o.undone_count++] = u;
    return true;
}

static bool parse_statement(parser *p, char *text)
{
    const char *key = word(&text);
    if (strcmp(key, "memory") == 0) return parse_memory(p, text);
    if (strcmp(key, "price") == 0) return parse_price(p, text);
    if (strcmp(key, "undone") == 0) return parse_undone(p, text);
    if (strcmp(key, "room") == 0) return parse_hint(p, text);
    if (strcmp(key, "name") == 0) {
        if (p->o.name) return fail(p, "name: said twice");
        if (!hk_name_good(text, HAK_POLICY_NAME_MOST))
            return fail(p, "name: 1 to %d bytes without control characters expected", HAK_POLICY_NAME_MOST);
        p->o.name = text;
        return true;
    }
    if (strcmp(key, "mode") == 0) {
        if (p->o.mode != HAK_POLICY_MODE_NONE) return fail(p, "mode: said twice");
        p->o.mode = hak_mode_by_name(text);
        return p->o.mode >= 0 || fail(p, "mode: '%.40s' is none", text);
    }
    return parse_setting(p, key, text);
}

/* text: n bytes, with room for an end behind them. */
static bool parse(parser *p, char *text, size_t n)
{
    bool headed = false;
    char *end = text + n;
    *end = '\0';
    for (char *next; text < end; text = next) {
        char *stop = memchr(text, '\n', (size_t)(end - text));
        next = stop ? stop + 1 : end;
        if (stop) *stop = '\0';
        p->line++;
        if (strlen(text) != (size_t)((stop ? stop : end) - text)) return fail(p, "a byte of zero");
        text += strspn(text, " \t");
        for (char *last = text + strlen(text); last > text && strchr(" \t\r", last[-1]);)
            *--last = '\0';
        if (*text == '\0' || *text == '#') continue;
        if (headed) {
            if (!parse_statement(p, text)) return false;
            continue;
        }
        if (strncmp(text, head, strlen(head)) != 0) return fail(p, "'hakmem-policy 1' expected");
        if (strcmp(text + strlen(head), "1") != 0)
            return fail(p, "version '%.20s' is unknown, this is %d", text + strlen(head), VERSION);
        headed = true;
    }
    if (!headed) p->line = p->line ? p->line : 1;
    return headed || fail(p, "'hakmem-policy 1' expected");
}

static size_t count_lines(const char *text, size_t n)
{
    size_t lines = 1;
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    return lines;
}

hak_policy *hak_policy_parse(const hak_os *given, const char *text, size_t n, hak_policy_error *error)
{
    hak_os os;
    parser p = {.o = HAK_POLICY_OPTIONS_INIT, .tuning = HAK_TUNING_INIT, .error = error};
    if (hk_os_read(&os, given)) return fail(&p, "the table of the OS is broken"), NULL;
    if (n > TEXT_MOST) return p.line = 1, fail(&p, "longer than 1 MiB"), NULL;
    size_t hints = hk_min(count_lines(text, n), HAK_HINTS_MOST) * sizeof(hak_hint);
    char *pages = hk_os_take(&os, hints + n + 1);
    if (!pages) return fail(&p, "no memory"), NULL;
    hak_policy *policy = NULL;
    p.hints = (hak_hint *)(void *)pages;
    if (n) memcpy(pages + hints, text, n);
    if (parse(&p, pages + hints, n)) {
        p.o.tuning = &p.tuning;
        p.o.hints = p.hints;
        p.o.undone = p.undone;
        policy = hak_policy_new(given, &p.o);
        p.line = 0;
        if (!policy) fail(&p, "no memory");
    }
    hk_os_give(&os, pages, hints + n + 1);
    return policy;
}

/* ---- Print ---------------------------------------------------------------------------------------- */

typedef struct printer {
    char *out;
    size_t room, n; /* n: of the whole text */
} printer;

static void print(printer *p, const char *format, ...) HK_FORMAT(2, 3);
static void print(printer *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t left = p->n < p->room ? p->room - p->n : 0;
    int n = vsnprintf(left ? p->out + p->n : NULL, left, format, args);
    va_end(args);
    p->n += n > 0 ? (size_t)n : 0;
}

/* As parse_number() reads it. */
static void number(char text[VALUE], size_t v)
{
    static const char units[] = "KMGT";
    unsigned unit = 0;
    while (unit < 4 && v && v % 1024 == 0) {
        v /= 1024;
        unit++;
    }
    if (unit && v >= 10240) v <<= 10 * unit, unit = 0; /* a time, say */
    char suffix[2] = {unit ? units[unit - 1] : '\0', '\0'};
    if (v == HAK_NONE) snprintf(text, VALUE, "none");
    else snprintf(text, VALUE, "%zu%s", v, suffix);
}

static void tried_value(char text[VALUE], const hak_undone *u, size_t v)
{
    if (strcmp(u->number, "mode") == 0) snprintf(text, VALUE, "%s", hak_mode_name((hak_mode)v));
    else number(text, v);
}

static void put_undone(printer *p, const hak_undone *u)
{
    char to[VALUE], from[VALUE];
    tried_value(to, u, u->to);
    tried_value(from, u, u->from);
    print(p, "undone %s %s from %s cost %u without %u windows %u price %u fault %u\n", u->number, to, from,
          u->cost, u->without, u->windows, u->price, u->fault_ns);
}

size_t hak_policy_print(const hak_policy *policy, char *out, size_t room)
{
    printer p = {out, room, 0};
    char value[VALUE];
    print(&p, "%s%d\n", head, VERSION);
    if (policy->name[0]) print(&p, "name %s\n", policy->name);
    if (policy->mode != HAK_POLICY_MODE_NONE) print(&p, "mode %s\n", hak_mode_name((hak_mode)policy->mode));
    for (unsigned i = 1; i < HK_SETTING_WORDS; i++) {
        size_t v = hk_setting_get(&policy->tuning, i);
        number(value, v);
        if (v) print(&p, "%s %s\n", hk_setting_name(i), value);
    }
    if (policy->price) print(&p, "price %u\n", policy->price);
    number(value, policy->budget);
    if (policy->budget) print(&p, "memory %s\n", value);
    for (size_t i = 0; i < policy->undone_count; i++)
        put_undone(&p, &policy->undone[i]);
    for (size_t i = 0; i < policy->hint_count; i++) {
        const hk_hint *h = &policy->hints[i];
        print(&p, "room %u %s %s\n", h->room, h->site ? "site" : "label", hk_hint_name(policy, h));
    }
    return p.n;
}

/* ---- Differences ---------------------------------------------------------------------------------- */

typedef struct differ {
    hak_policy_diff_fn *fn;
    void *user;
    size_t n;
} differ;

static void differs(differ *d, const char *what, const char *from, const char *to)
{
    if (from == to || (from && to && strcmp(from, to) == 0)) return;
    d->n++;
    if (d->fn) d->fn(d->user, what, from, to);
}

static const char *said(char text[VALUE], size_t v)
{
    if (!v) return NULL;
    number(text, v);
    return text;
}

static const char *mode_name_of(const hak_policy *policy)
{
    return policy->mode == HAK_POLICY_MODE_NONE ? NULL : hak_mode_name((hak_mode)policy->mode);
}

static void hints_differ(differ *d, const hak_policy *of, const hak_policy *other, bool back)
{
    char a[VALUE], b[VALUE], what[HAK_HINT_NAME_MOST + 16];
    for (size_t i = 0; i < of->hint_count; i++) {
        const hk_hint *h = &of->hints[i];
        unsigned room = hk_policy_room(other, h->site, h->hash);
        if (back && room) continue; /* said the other way round */
        snprintf(what, sizeof what, "room %s %s", h->site ? "site" : "label", hk_hint_name(of, h));
        const char *mine = said(a, h->room), *theirs = said(b, room);
        differs(d, what, back ? theirs : mine, back ? mine : theirs);
    }
}

/* Trials that one of them knows: their figures may differ. */
static void undone_differ(differ *d, const hak_policy *of, const hak_policy *other, bool back)
{
    char to[VALUE], from[VALUE], what[2 * VALUE + 32];
    for (size_t i = 0; i < of->undone_count; i++) {
        const hak_undone *u = &of->undone[i];
        bool there = false;
        for (size_t k = 0; k < other->undone_count; k++)
            there |= other->undone[k].number == u->number && other->undone[k].to == u->to &&
                     other->undone[k].from == u->from;
        if (there) continue;
        tried_value(to, u, u->to);
        tried_value(from, u, u->from);
        snprintf(what, sizeof what, "undone %s %s from %s", u->number, to, from);
        differs(d, what, back ? NULL : "known", back ? "known" : NULL);
    }
}

size_t hak_policy_diff(const hak_policy *from, const hak_policy *to, hak_policy_diff_fn *fn, void *user)
{
    static const hak_policy nothing = {.mode = HAK_POLICY_MODE_NONE};
    differ d = {fn, user, 0};
    char a[VALUE], b[VALUE];
    if (!from) from = &nothing;
    if (!to) to = &nothing;
    differs(&d, "name", from->name[0] ? from->name : NULL, to->name[0] ? to->name : NULL);
    differs(&d, "mode", mode_name_of(from), mode_name_of(to));
    for (unsigned i = 1; i < HK_SETTING_WORDS; i++)
        differs(&d, hk_setting_name(i), said(a, hk_setting_get(&from->tuning, i)),
                said(b, hk_setting_get(&to->tuning, i)));
    differs(&d, "price", said(a, from->price), said(b, to->price));
    differs(&d, "memory", said(a, from->budget), said(b, to->budget));
    undone_differ(&d, from, to, false);
    undone_differ(&d, to, from, true);
    hints_differ(&d, from, to, false);
    hints_differ(&d, to, from, true);
    return d.n;
}
