//! Cryptographic primitives for sessions. All come from `snow` except AES-256-GCM: the current
//! version of the crate `aes-gcm` is twice as fast as the one that `snow` uses.

use aes_gcm::aead::inout::InOutBuf;
use aes_gcm::{AeadInOut, Aes256Gcm, KeyInit};
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};

use crate::wire::TAG_LEN;

/// Provides the primitives of `Noise_…_25519_AESGCM_BLAKE2s`.
pub struct Primitives;

impl CryptoResolver for Primitives {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        DefaultResolver.resolve_rng()
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        match choice {
            CipherChoice::AESGCM => Some(Box::new(AesGcm::new(&[0; 32]))),
            CipherChoice::ChaChaPoly => None,
        }
    }
}

struct AesGcm(Aes256Gcm);

impl AesGcm {
    fn new(key: &[u8; 32]) -> AesGcm {
        AesGcm(Aes256Gcm::new(key.into()))
    }
}

/// Returns a message's nonce (Noise, section 12.4).
fn nonce(number: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    nonce
}

impl Cipher for AesGcm {
    fn name(&self) -> &'static str {
        "AESGCM"
    }

    fn set(&mut self, key: &[u8; 32]) {
        *self = AesGcm::new(key);
    }

    fn encrypt(&self, number: u64, header: &[u8], plain: &[u8], out: &mut [u8]) -> usize {
        let (text, rest) = out.split_at_mut(plain.len());
        let buffer = InOutBuf::new(plain, text).expect("equal lengths");
        let nonce = nonce(number);
        let tag = self.0.encrypt_inout_detached(&nonce.into(), header, buffer);
        let tag = tag.expect("a message of less than 2^36 bytes");
        rest[..TAG_LEN].copy_from_slice(&tag);
        plain.len() + TAG_LEN
    }

    fn decrypt(
        &self,
        number: u64,
        header: &[u8],
        sealed: &[u8],
        out: &mut [u8],
    ) -> Result<usize, snow::Error> {
        let split = sealed.split_last_chunk::<TAG_LEN>();
        let (text, tag) = split.ok_or(snow::Error::Decrypt)?;
        let out = out.get_mut(..text.len()).ok_or(snow::Error::Decrypt)?;
        let buffer = InOutBuf::new(text, out).map_err(|_| snow::Error::Decrypt)?;
        let nonce = nonce(number);
        self.0
            .decrypt_inout_detached(&nonce.into(), header, buffer, tag.into())
            .map_err(|_| snow::Error::Decrypt)?;
        Ok(text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of `AESGCM` in Python's `cryptography` 50.0 (OpenSSL). The nonce is four zero bytes
    /// and the message number in network byte order.
    const SEALED: [u8; 23] = [
        0x65, 0x71, 0x03, 0x7c, 0xbc, 0x8c, 0x6c, 0xd7, 0xa9, 0xe1, 0x16, 0x63, 0x2d, 0x58, 0xb7,
        0x71, 0x7e, 0x7f, 0x6b, 0xda, 0xfd, 0x99, 0xc5,
    ];

    #[test]
    fn messages_are_those_of_another_implementation() {
        let mut cipher = AesGcm::new(&[0; 32]);
        cipher.set(&std::array::from_fn(|at| at as u8));
        let number = 0x0102_0304_0506_0708;
        let mut sealed = [0; 40];
        let len = cipher.encrypt(number, b"header", b"a frame", &mut sealed);
        assert_eq!(sealed[..len], SEALED);

        let mut opened = [0; 40];
        let len = cipher.decrypt(number, b"header", &SEALED, &mut opened);
        assert_eq!(len, Ok(7));
        assert_eq!(&opened[..7], b"a frame");
        let refused = [
            cipher.decrypt(number, b"Header", &SEALED, &mut opened),
            cipher.decrypt(number + 1, b"header", &SEALED, &mut opened),
            cipher.decrypt(number, b"header", &SEALED[..22], &mut opened),
            cipher.decrypt(number, b"header", &SEALED[..15], &mut opened),
            cipher.decrypt(number, b"header", &SEALED, &mut opened[..6]),
        ];
        for refused in refused {
            assert_eq!(refused, Err(snow::Error::Decrypt));
        }
    }
}
