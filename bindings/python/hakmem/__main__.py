from hakmem._cli import main

main()
