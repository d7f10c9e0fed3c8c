/* sqlite_hak: runs a file of SQL in a database in memory, and prints as the shell sqlite3 does. */
#include "command.h"
#include "sqlite_heap.h"

#include <stdio.h>
#include <stdlib.h>

static int print_row(void *user, int count, char **values, char **names)
{
    (void)user, (void)names;
    for (int i = 0; i < count; i++)
        printf("%s%s", i ? "|" : "", values[i] ? values[i] : "");
    putchar('\n');
    return 0;
}

static int run(const command *c)
{
    sqlite3 *db = NULL;
    char *error = NULL;
    int status = sqlite3_open(":memory:", &db);
    if (status == SQLITE_OK) status = sqlite3_exec(db, "PRAGMA temp_store = memory", NULL, NULL, NULL);
    if (status == SQLITE_OK) status = sqlite3_exec(db, c->text, print_row, NULL, &error);
    if (status != SQLITE_OK) fprintf(stderr, "%s: %s\n", c->file, error ? error : sqlite3_errstr(status));
    sqlite3_free(error);
    command_report(c, sqlite_heap_current());
    /* With a heap of its own the connection goes with it. */
    if (c->own) sqlite3_close(db);
    return status != SQLITE_OK;
}

static int run_in_heap(const command *c)
{
    hak_space *space = hak_space_new(NULL);
    int result = 1;
    if (space && sqlite_heap_start(space, c->labels) == SQLITE_OK) {
        hak_ctx *heap = sqlite_heap_new();
        if (heap) {
            hak_limit(heap, 0, c->limit, NULL, NULL);
            sqlite_heap_use(heap);
            result = run(c);
            sqlite_heap_drop(heap);
        }
        sqlite_heap_end();
    }
    hak_space_delete(space);
    return result;
}

int main(int argc, char **argv)
{
    command c;
    if (!command_read(&c, argc, argv)) return 2;
    if (c.own) sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    int result = c.own ? run(&c) : run_in_heap(&c);
    free(c.text);
    return result;
}
