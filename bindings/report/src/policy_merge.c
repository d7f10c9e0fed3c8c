/* hakmem policy merge: the mode that most evidence is for, medians of its numbers, and all that was undone. */
#include "policy_merge.h"

#include "common/policy.h"
#include "report.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NUMBERS = sizeof(hak_tuning) / sizeof(size_t),
    SLAB_SIZES = offsetof(hak_tuning, slab_sizes) / sizeof(size_t)
};
_Static_assert(sizeof(hak_tuning) % sizeof(size_t) == 0, "numbers are words");

/* A file, and how much its host has seen: 1, and the windows in which it tried what its mode is better than. */
typedef struct source {
    const char *file;
    hak_policy *policy;
    uint64_t weight;
    size_t numbers[NUMBERS]; /* [0] is the struct's size */
} source;

typedef struct vote {
    size_t value;
    uint64_t weight;
} vote;

typedef struct merged {
    hak_policy_options o;
    hak_tuning tuning;
    hak_hint hints[HAK_HINTS_MOST];
    hak_undone undone[HAK_UNDONE_MOST];
    hak_undone machine; /* price and fault_ns of most of what was undone */
    const char *left_out;
    size_t left_out_count; /* files of other machines, and the first of them */
} merged;

hak_policy *hkr_load_policy(const char *file, const char *head)
{
    char why[600], line[1200];
    hak_policy *policy = hkc_policy_load(file, why, sizeof why);
    if (policy) return policy;
    hkr_clean(line, sizeof line, why);
    fprintf(stderr, "hakmem: %s%s\n", head, line);
    return NULL;
}

static int failed(const char *file, const char *why)
{
    char name[600];
    hkr_clean(name, sizeof name, file);
    fprintf(stderr, "hakmem: %.400s: %s\n", name, why);
    return 1;
}

static bool load(source *s, const char *file)
{
    hak_undone undone[HAK_UNDONE_MOST];
    hak_tuning t = HAK_TUNING_INIT;
    s->file = file;
    s->policy = hkr_load_policy(file, "");
    if (!s->policy) return false;
    hak_policy_tuning(s->policy, &t);
    memcpy(s->numbers, &t, sizeof t);
    s->weight = 1;
    const size_t n = hak_policy_undone(s->policy, undone, HAK_UNDONE_MOST);
    for (size_t i = 0; i < n; i++)
        if (strcmp(undone[i].number, "mode") == 0 && (int)undone[i].from == hak_policy_mode(s->policy))
            s->weight += undone[i].windows;
    return true;
}

/* The mode whose files weigh most; the first of several that weigh the same. */
static int mode_of(const source *s, size_t count)
{
    int best = HAK_POLICY_MODE_NONE;
    uint64_t most = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t weight = 0;
        const int mode = hak_policy_mode(s[i].policy);
        for (size_t k = 0; k < count; k++)
            if (hak_policy_mode(s[k].policy) == mode) weight += s[k].weight;
        if (weight > most) {
            most = weight;
            best = mode;
        }
    }
    return best;
}

static int by_value(const void *a, const void *b)
{
    const size_t x = ((const vote *)a)->value, y = ((const vote *)b)->value;
    return x < y ? -1 : x > y;
}

/* The value below and above which lies half of the weight. */
static size_t median(vote *votes, size_t n)
{
    uint64_t all = 0, below = 0;
    qsort(votes, n, sizeof *votes, by_value);
    for (size_t i = 0; i < n; i++)
        all += votes[i].weight;
    for (size_t i = 0; i < n; i++)
        if ((below += votes[i].weight) * 2 >= all) return votes[i].value;
    return 0;
}

/* Sizes that three of four know as such, as the learner of one host counts its contexts. */
static size_t sizes(const vote *votes, size_t n, uint64_t all)
{
    size_t found = 0;
    for (unsigned bit = 0; bit < 8 * sizeof(size_t); bit++) {
        uint64_t weight = 0;
        for (size_t i = 0; i < n; i++)
            if (votes[i].value != HAK_NONE && votes[i].value >> bit & 1) weight += votes[i].weight;
        if (weight * 4 >= all * 3) found |= (size_t)1 << bit;
    }
    return found;
}

/* Numbers are those of the files with the mode: a number that half of their weight does not say is not said. */
static void merge_numbers(merged *m, const source *s, size_t count, vote *votes)
{
    size_t numbers[NUMBERS];
    memcpy(numbers, &m->tuning, sizeof numbers);
    for (size_t i = 1; i < NUMBERS; i++) {
        uint64_t all = 0, said = 0;
        size_t n = 0;
        for (size_t k = 0; k < count; k++) {
            if (hak_policy_mode(s[k].policy) != m->o.mode) continue;
            all += s[k].weight;
            if (!s[k].numbers[i]) continue;
            said += s[k].weight;
            votes[n++] = (vote){s[k].numbers[i], s[k].weight};
        }
        if (n && said * 2 >= all) numbers[i] = i == SLAB_SIZES ? sizes(votes, n, all) : median(votes, n);
    }
    memcpy(&m->tuning, numbers, sizeof numbers);
}

static unsigned mean(unsigned a, unsigned of_a, unsigned b, unsigned of_b)
{
    return (unsigned)(((uint64_t)a * of_a + (uint64_t)b * of_b) / ((uint64_t)of_a + of_b));
}

/* What was seen on a machine whose faults cost less than half or more than twice as much says nothing here. */
static bool alike(const hak_undone *a, const hak_undone *b)
{
    return a->price == b->price && a->fault_ns / 2 <= b->fault_ns && b->fault_ns / 2 <= a->fault_ns;
}

/* The price at which half of the windows of all that was undone were seen, or with that price the cost of a
 * fault: so the order of the files does not matter. */
static unsigned usual(const merged *m, const source *s, size_t count, vote *votes, unsigned price)
{
    size_t n = 0;
    for (size_t k = 0; k < count; k++) {
        hak_undone found[HAK_UNDONE_MOST];
        const bool same_mode = hak_policy_mode(s[k].policy) == m->o.mode;
        const size_t all = same_mode ? hak_policy_undone(s[k].policy, found, HAK_UNDONE_MOST) : 0;
        for (size_t i = 0; i < all; i++)
            if (!price || found[i].price == price)
                votes[n++] = (vote){price ? found[i].fault_ns : found[i].price, found[i].windows};
    }
    return n ? (unsigned)median(votes, n) : 0;
}

static void merge_undone(merged *m, const source *s)
{
    hak_undone found[HAK_UNDONE_MOST];
    const size_t n = hak_policy_undone(s->policy, found, HAK_UNDONE_MOST);
    bool left_out = false;
    for (size_t i = 0; i < n; i++) {
        const hak_undone *u = &found[i];
        if (!alike(u, &m->machine)) {
            if (!left_out && m->left_out_count++ == 0) m->left_out = s->file;
            left_out = true;
            continue;
        }
        size_t at = 0;
        while (at < m->o.undone_count && (strcmp(m->undone[at].number, u->number) != 0 ||
                                          m->undone[at].to != u->to || m->undone[at].from != u->from))
            at++;
        hak_undone *to = &m->undone[at];
        if (at == HAK_UNDONE_MOST) continue;
        if (at == m->o.undone_count) {
            *to = *u;
            m->o.undone_count++;
            continue;
        }
        to->cost = mean(to->cost, to->windows, u->cost, u->windows);
        to->without = mean(to->without, to->windows, u->without, u->windows);
        to->fault_ns = mean(to->fault_ns, to->windows, u->fault_ns, u->windows);
        to->windows = to->windows > UINT32_MAX - u->windows ? UINT32_MAX : to->windows + u->windows;
    }
}

static bool same_name(const hak_hint *a, const hak_hint *b)
{
    return a->site && b->site ? strcmp(a->site, b->site) == 0
                              : a->label && b->label && strcmp(a->label, b->label) == 0;
}

/* All hints; of two for one name the larger. */
static bool merge_hints(merged *m, const source *s)
{
    static hak_hint found[HAK_HINTS_MOST];
    const size_t n = hak_policy_hints(s->policy, found, HAK_HINTS_MOST);
    for (size_t i = 0; i < n; i++) {
        size_t at = 0;
        while (at < m->o.hint_count && !same_name(&m->hints[at], &found[i]))
            at++;
        if (at == HAK_HINTS_MOST)
            return failed(s->file, "the files have more than 1024 hints together"), false;
        if (at == m->o.hint_count) m->hints[m->o.hint_count++] = found[i];
        else if (m->hints[at].room < found[i].room) m->hints[at].room = found[i].room;
    }
    return true;
}

static void tell_left_out(const merged *m)
{
    char why[160];
    int n =
        snprintf(why, sizeof why, "what was undone there is left out: prices or costs of page faults differ");
    const size_t others = m->left_out_count - 1;
    if (m->left_out_count > 1)
        snprintf(why + n, sizeof why - (size_t)n, "; so is that of %zu other%s", others,
                 others == 1 ? "" : "s");
    if (m->left_out_count) failed(m->left_out, why);
}

static hak_policy *merge(const source *s, size_t count, vote *votes)
{
    static merged m;
    m = (merged){.o = HAK_POLICY_OPTIONS_INIT, .tuning = HAK_TUNING_INIT};
    m.o.name = hak_policy_name(s[0].policy);
    m.o.price = hak_policy_price(s[0].policy);
    m.o.budget = hak_policy_budget(s[0].policy);
    m.o.mode = mode_of(s, count);
    m.machine.price = usual(&m, s, count, votes, 0);
    m.machine.fault_ns = usual(&m, s, count, votes, m.machine.price);
    for (size_t i = 0; i < count; i++) {
        if (hak_policy_price(s[i].policy) != m.o.price || hak_policy_budget(s[i].policy) != m.o.budget)
            return failed(s[i].file, "another price or budget than in the first file"), NULL;
        if (strcmp(hak_policy_name(s[i].policy), m.o.name) != 0) m.o.name = NULL;
        if (!m.o.name) m.o.name = "";
        if (hak_policy_mode(s[i].policy) == m.o.mode) merge_undone(&m, &s[i]);
        if (!merge_hints(&m, &s[i])) return NULL;
    }
    tell_left_out(&m);
    merge_numbers(&m, s, count, votes);
    m.o.tuning = &m.tuning;
    m.o.hints = m.hints;
    m.o.undone = m.undone;
    hak_policy *policy = hak_policy_new(NULL, &m.o);
    if (!policy) failed("merge", "no memory");
    return policy;
}

static int put(const hak_policy *policy, FILE *out)
{
    const size_t n = hak_policy_print(policy, NULL, 0) + 1;
    char *text = malloc(n);
    if (!text) return failed("merge", "no memory");
    hak_policy_print(policy, text, n);
    fputs(text, out); /* whoever closes the file sees an error */
    free(text);
    return 0;
}

int hkr_merge_policies(char **files, size_t count, FILE *out)
{
    source *sources = calloc(count, sizeof *sources);
    vote *votes = calloc(count, HAK_UNDONE_MOST * sizeof *votes);
    bool ok = sources && votes;
    if (!ok) failed("merge", "no memory");
    for (size_t i = 0; i < count && ok; i++)
        ok = load(&sources[i], files[i]);
    hak_policy *policy = ok ? merge(sources, count, votes) : NULL;
    const int status = policy ? put(policy, out) : 1;
    hak_policy_unref(policy);
    for (size_t i = 0; sources && i < count; i++)
        hak_policy_unref(sources[i].policy);
    free(sources);
    free(votes);
    return status;
}
