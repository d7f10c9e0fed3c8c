#ifndef HKO_FIRST_H
#define HKO_FIRST_H
void hko_first(void);
#endif
