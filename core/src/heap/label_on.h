/* Switches labels on in a context that has blocks already. */
#ifndef HK_LABEL_ON_H
#define HK_LABEL_ON_H

#include "heap/ctx.h"

/* Charges and clears label bytes for all units of the context; before hk_labels_use(). false = over the
 * limit, or refused by the OS: nothing changed. */
bool hk_labels_charge(hak_ctx *ctx);
void hk_labels_uncharge(hak_ctx *ctx);
/* From now on blocks have labels. */
void hk_labels_use(hak_ctx *ctx);

#endif
