// Shop is a complete application on the library: a small web shop that charges cards through a bank that is not always there, ships what is paid, and sends a report
// every day. It shows how the parts fit together; docs/embedding.md explains them.
//
//	go run . -bank http://127.0.0.1:8098
//	curl -d '{"item": "teapot", "cents": 1250}' http://127.0.0.1:8090/orders
//
// The console is at http://127.0.0.1:8090/console/, the metrics are at /metrics.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	file := flag.String("store", "shop.db", "the SQLite file for orders and jobs")
	listen := flag.String("listen", "127.0.0.1:8090", "the address of the shop")
	bank := flag.String("bank", "http://127.0.0.1:8098", "the address of the bank")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *file, *listen, *bank); err != nil {
		fmt.Fprintln(os.Stderr, "shop:", err)
		os.Exit(1)
	}
}

// run serves the shop and runs its jobs until ctx ends.
func run(ctx context.Context, file, listen, bank string) error {
	shop, err := OpenShop(ctx, file, HTTPBank{URL: bank})
	if err != nil {
		return err
	}
	defer shop.Close()
	web, err := shop.Handler()
	if err != nil {
		return err
	}
	server := &http.Server{Addr: listen, Handler: web, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		timeout, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(timeout)
	}()
	served := make(chan error, 1)
	go func() { served <- server.ListenAndServe() }()
	fmt.Printf("the shop is at http://%s, its console at http://%s/console/\n", listen, listen)
	err = shop.Worker.Run(ctx)
	if s := <-served; !errors.Is(s, http.ErrServerClosed) {
		err = errors.Join(err, s)
	}
	return err
}
