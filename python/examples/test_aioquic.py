"""A download over QUIC on a phone."""

import datetime
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import printed

import longwire

SCRIPT = str(Path(__file__).with_name("quic_echo.py"))

SIZE = 1_000_000


def make_certificate(folder: Path) -> "tuple[str, str]":
    """Writes the server's certificate and key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "far")])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return str(folder / "certificate.pem"), str(folder / "key.pem")


@pytest.mark.needs("aioquic")
@pytest.mark.link(preset="lte")
def test_a_download_takes_its_time_on_lte(link: longwire.LiveLink, tmp_path: Path) -> None:
    words = [sys.executable, SCRIPT, "serve", *make_certificate(tmp_path)]
    server = link.far.popen(words, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None and server.stdout.readline() == "ready\n"
    handshake, seconds, received = map(float, printed(link, SCRIPT, "fetch", str(SIZE)).split())
    assert received == SIZE
    # A handshake is a round trip of 86 ms, and a megabyte takes 0.33 s at 24 Mbit/s.
    assert handshake > 0.080
    assert seconds - handshake > 0.33
    link.report.require("artifacts-lost=0")
