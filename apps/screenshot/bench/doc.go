// Package bench compares the screenshot service with puppeteer-cluster and Gotenberg: how many pictures each makes of the same 20 pages with the same Chromium, whether the
// pictures are equal, and what hostile pages do to each. Run it with `make bench-screenshot`; `make test` takes a few pictures with the service alone.
package bench
