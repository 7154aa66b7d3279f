//! The CRC-32 of gzip, eight bytes at a time.

const TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut n = 1;
    while n < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[n - 1][byte];
            tables[n][byte] = before >> 8 ^ tables[0][(before & 0xFF) as usize];
            byte += 1;
        }
        n += 1;
    }
    tables
}

/// The checksum of what `crc` is the checksum of, followed by `bytes`.
pub(crate) fn crc32(crc: u32, bytes: &[u8]) -> u32 {
    let mut crc = !crc;
    let (eights, rest) = bytes.as_chunks::<8>();
    for eight in eights {
        let n = u64::from_le_bytes(*eight) ^ u64::from(crc);
        crc = 0;
        for (i, table) in TABLES.iter().rev().enumerate() {
            crc ^= table[(n >> (8 * i) & 0xFF) as usize];
        }
    }
    for byte in rest {
        crc = crc >> 8 ^ TABLES[0][((crc ^ u32::from(*byte)) & 0xFF) as usize];
    }
    !crc
}
