/* The reports of several processes: those that were named, or all of this user's that listen. A report is
 * asked for once in a second at most, so that many who look cost a process no more than one. */
#ifndef HKR_FLEET_H
#define HKR_FLEET_H

#include "report.h"
#include "source.h"

typedef struct hkr_member hkr_member;
typedef struct hkr_fleet {
    char *const *named; /* processes, sockets or files; they stay */
    size_t named_count; /* 0 = every process of this user that listens */
    hkr_report **reports;
    size_t count;
    hkr_member *silent; /* who did not answer */
    size_t silent_count;
    int64_t loaded; /* when, in milliseconds; 0 = never */
    bool told_most; /* a line said that there are more than HKR_FLEET_MOST */
    char error[HKR_ERROR];
} hkr_fleet;

enum {
    HKR_FLEET_FRESH = 1000,   /* milliseconds for which a report is used again */
    HKR_FLEET_SILENT = 60000, /* for which a process that did not answer in time is not asked again */
    HKR_FLEET_MOST = 1024,    /* processes; a line says once that further ones are left out */
};

/* named: as above. Asks for the first time. false = none of those that were named gave a report, which was said;
 * where none was named, processes may come later. */
bool hkr_fleet_begin(hkr_fleet *fleet, char *const *named, size_t count);
/* Brings the reports up to date. Where there is none of a process, `error` says why, the last one if there are
 * several. Two of one process are one. A process that does not answer is waited for once in a minute. */
void hkr_fleet_load(hkr_fleet *fleet);
void hkr_fleet_end(hkr_fleet *fleet);

#endif
