// Package inbox is where the demo's notifications arrive: a real mail server and a real receiver of webhooks, on loopback.
package inbox
