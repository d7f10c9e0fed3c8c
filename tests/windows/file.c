/* Files that are written beside their names, on Windows: by others at the same time, and where others have them open. */
#include "common/file.h"

#include <errno.h>
#include <io.h>
#include <stdio.h>
#include <string.h>

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#define NAME "written beside.txt"

static int failures;

static void check(int ok, const char *what)
{
    if (ok) return;
    failures++;
    printf("failed: %s\n", what);
}

static void put(hkc_file *file, const char *text)
{
    const int n = (int)strlen(text);
    check(_write(file->fd, text, (unsigned)n) == n, text);
}

static int has(const char *name, const char *text)
{
    char found[100] = "";
    FILE *in = fopen(name, "rb");
    if (!in) return 0;
    found[fread(found, 1, sizeof found - 1, in)] = '\0';
    fclose(in);
    return strcmp(found, text) == 0;
}

static int parts(void)
{
    WIN32_FIND_DATAA found;
    const HANDLE search = FindFirstFileA(NAME ".part-*", &found);
    int count = 0;
    if (search == INVALID_HANDLE_VALUE) return 0;
    do
        count++;
    while (FindNextFileA(search, &found));
    FindClose(search);
    return count;
}

/* A thread of another machine may have this one's number: whether a file is written to is known to the file
 * system alone, so that this thread can play both. */
static void two_of_one_number(void)
{
    hkc_file first, second, third;
    check(hkc_file_open(&first, NAME, 0600) == 0, "the first");
    put(&first, "first ");
    check(hkc_file_open(&second, NAME, 0600) == 0, "a second at the same time");
    check(strcmp(first.part, second.part) != 0, "they are two files");
    put(&second, "second");
    put(&first, "whole");
    hkc_file_remove_part(NAME, (pid_t)GetCurrentThreadId());
    check(parts() == 2, "what is written to is not removed");
    check(hkc_file_close(&first, 0) == 0 && has(NAME, "first whole"), "the first ends");
    check(hkc_file_open(&third, NAME, 0600) == 0 && hkc_file_close(&third, ECANCELED) == ECANCELED,
          "one that fails");
    check(has(NAME, "first whole"), "... changes nothing");
    check(hkc_file_close(&second, 0) == 0 && has(NAME, "second"), "the second ends, and wins");
    check(parts() == 0, "nothing is left beside it");
}

static void one_that_is_left(void)
{
    hkc_file file;
    char name[100];
    snprintf(name, sizeof name, NAME ".part-%lu", GetCurrentThreadId());
    FILE *left = fopen(name, "w");
    check(left && fputs("left by one that died, and longer than what comes", left) >= 0 && fclose(left) == 0,
          "a part");
    check(hkc_file_open(&file, NAME, 0600) == 0 && strcmp(file.part, name) == 0, "it is used again");
    put(&file, "new");
    check(hkc_file_close(&file, 0) == 0 && has(NAME, "new") && parts() == 0, "without what it had");
    left = fopen(name, "w");
    check(left && fclose(left) == 0, "a part once more");
    hkc_file_remove_part(NAME, (pid_t)GetCurrentThreadId());
    check(parts() == 0, "it is removed");
}

static DWORD WINAPI close_soon(void *file)
{
    Sleep(20);
    return (DWORD)fclose(file);
}

static void others_have_it_open(void)
{
    hkc_file file;
    FILE *reader = fopen(NAME, "rb");
    check(reader && hkc_file_open(&file, NAME, 0600) == 0, "a file that is read meanwhile");
    put(&file, "newer");
    check(hkc_file_close(&file, 0) == EACCES && has(NAME, "new") && parts() == 0, "the old one stays");
    check(hkc_file_open(&file, NAME, 0600) == 0, "again");
    put(&file, "newest");
    const HANDLE thread = CreateThread(NULL, 0, close_soon, reader, 0, NULL);
    check(thread && hkc_file_close(&file, 0) == 0 && has(NAME, "newest"), "one that reads it for a moment");
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
}

int main(void)
{
    remove(NAME);
    two_of_one_number();
    one_that_is_left();
    others_have_it_open();
    check(remove(NAME) == 0, "nobody has it open");
    return failures;
}
