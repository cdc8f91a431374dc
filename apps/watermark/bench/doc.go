// Package bench measures what the invisible mark withstands and costs. README.md has the tables; `make bench-watermark` prints them.
package bench
