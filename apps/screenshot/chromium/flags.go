package chromium

import (
	"fmt"
	"path/filepath"
	"strings"
)

// flags returns the command line. Each group has one purpose.
func flags(cfg Config, folder string) []string {
	heap := cfg.HeapMB
	if heap <= 0 {
		heap = 512
	}
	list := []string{
		"--remote-debugging-pipe", "--user-data-dir=" + filepath.Join(folder, "profile"), "--headless", "--no-first-run", "--no-default-browser-check",
		"--enable-automation", "--password-store=basic", "--use-mock-keychain", "--mute-audio", "--noerrdialogs", "--disable-dev-shm-usage",

		// Every connection goes through the proxy, also those to loopback, and no name is resolved here. WebRTC and QUIC use UDP, which no proxy sees.
		"--proxy-server=http://" + cfg.Proxy, "--proxy-bypass-list=<-loopback>", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1", "--dns-prefetch-disable",
		"--webrtc-ip-handling-policy=disable_non_proxied_udp", "--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--disable-quic", "--no-pings",

		// The browser calls nothing on its own.
		"--disable-background-networking", "--disable-component-update", "--disable-component-extensions-with-background-pages", "--disable-client-side-phishing-detection",
		"--disable-default-apps", "--disable-domain-reliability", "--disable-extensions", "--disable-sync", "--disable-breakpad", "--disable-crash-reporter", "--metrics-recording-only",
		"--disable-search-engine-choice-screen", "--safebrowsing-disable-auto-update",

		// Pages get no windows, permissions or devices.
		"--block-new-web-contents", "--deny-permission-prompts", "--disable-notifications", "--disable-prompt-on-repost", "--disable-speech-api",

		// A page is rendered as fast as one that a person looks at.
		"--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding", "--disable-hang-monitor",
		"--disable-ipc-flooding-protection", "--disable-back-forward-cache",

		// The same page gives the same pixels on every machine with the same fonts.
		"--hide-scrollbars", "--force-color-profile=srgb", "--font-render-hinting=none", "--disable-lcd-text", "--disable-font-subpixel-positioning", "--disable-partial-raster",
		"--disable-gpu", "--lang=en-US", "--disable-smooth-scrolling",

		"--disable-features=" + strings.Join([]string{
			"SpareRendererForSitePerProcess", "Translate", "OptimizationHints", "MediaRouter", "DialMediaRouteProvider", "InterestFeedContentSuggestions", "CertificateTransparencyComponentUpdater",
			"AutofillServerCommunication", "PrivacySandboxSettings4", "HttpsUpgrades", "HttpsFirstBalancedModeAutoEnable", "LocalNetworkAccessChecks", "PaintHolding", "WebBluetooth", "DirectSockets",
		}, ","),
		fmt.Sprintf("--js-flags=--max-old-space-size=%d", heap),
	}
	if !cfg.Sandboxed() {
		list = append(list, "--no-sandbox", "--no-zygote-sandbox")
	}
	if cfg.WebGL {
		list = append(list, "--enable-unsafe-swiftshader")
	}
	return list
}
