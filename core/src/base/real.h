/* The functions of real numbers that profiles and learners need. The core does not link libm. */
#ifndef HK_REAL_H
#define HK_REAL_H

double hk_root(double x); /* square root; 0 below 0 */
double hk_log(double x);  /* natural logarithm; x is above 0 and not subnormal */

#endif
