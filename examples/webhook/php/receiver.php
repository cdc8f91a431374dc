<?php
// Receives webhooks of Holdfast, in PHP 8. It needs no packages.
//
//     HOLDFAST_SECRET_SHOP=whsec_... php -S 127.0.0.1:8097 receiver.php

const TOLERANCE = 5 * 60; // seconds

// verify throws unless the request was signed with the secret within the last minutes.
function verify(string $secret, array $headers, string $body): void
{
    $key = base64_decode(preg_replace('/^whsec_/', '', $secret), true);
    $sent = $headers['HTTP_WEBHOOK_TIMESTAMP'] ?? '';
    if (!$key || !ctype_digit($sent) || abs(time() - (int) $sent) > TOLERANCE) {
        throw new RuntimeException('the timestamp is missing, too old or in the future');
    }
    $signed = ($headers['HTTP_WEBHOOK_ID'] ?? '') . '.' . $sent . '.' . $body;
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', $signed, $key, true));
    foreach (explode(' ', $headers['HTTP_WEBHOOK_SIGNATURE'] ?? '') as $signature) { // several while a secret is exchanged
        if (hash_equals($expected, $signature)) {
            return;
        }
    }
    throw new RuntimeException('no signature is made with this secret');
}

$body = file_get_contents('php://input');
try {
    verify(getenv('HOLDFAST_SECRET_SHOP') ?: '', $_SERVER, $body);
} catch (RuntimeException $e) {
    http_response_code(401);
    echo $e->getMessage();
    return;
}
// Your code. A delivery may come again with the same webhook-id: store the id with what you do.
error_log($_SERVER['HTTP_WEBHOOK_ID'] . ' ' . $body);
http_response_code(204);
