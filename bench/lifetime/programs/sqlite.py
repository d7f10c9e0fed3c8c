"""Writes SQL for the shell of sqlite3: a table in memory that stays and grows, temporary ones that come."""

import random
import sys

random.seed(int(sys.argv[1]))
print("create table kept(id integer primary key, name text, value real); create index by_name on kept(name);")
for wave in range(8):
    rows = random.randrange(9000, 11000)
    print(f"create temp table work{wave}(a integer, b text);")
    for part in range(10):
        print(
            f"with recursive n(i) as (select 1 union all select i + 1 from n where i < {rows // 10})"
            f" insert into work{wave} select i, 'name ' || (i * 7919 % 9973) || '-{wave}-{part}' from n;"
            f" insert into kept(name, value) select b, a / 7.0 from work{wave} where a % 5 = {part % 5}"
            f" and b like '%-{part}';"
        )
    print(".output /dev/null")
    print(f"select substr(b, 1, 7), count(*) from work{wave} group by 1 order by 2 desc;")
    print(".output")
    print(f"drop table work{wave}; delete from kept where id % 11 = {wave};")
    print(".shell kill -USR2 $PPID\nselect 1;")
