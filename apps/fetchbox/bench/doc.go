// Package bench compares the transfer half of FetchBox (download, spool, verify, upload) with rclone copyurl and with Scrapy's FilesPipeline: throughput and memory into
// a real S3 server, and the wrong files that hostile sources make each of them store. Run it with `make bench-fetchbox`; `make test` runs a few transfers of FetchBox alone.
package bench
