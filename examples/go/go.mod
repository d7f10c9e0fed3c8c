module hakmem.example/tenants

go 1.21
